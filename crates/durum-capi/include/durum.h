/* durum.h - durable data structures for C and C++.
 *
 * A store is a directory with pools in it; a pool holds objects, which lie at the same addresses
 * in every run and point to each other with plain pointers; a transaction changes them all at once
 * or not at all, whatever kills the program. docs/tutorials/c.md is the tutorial.
 *
 * Conventions
 *
 *  1. Ownership. durum_store, durum_pool and durum_log are opaque. What an open or create
 *     function returns is the caller's until it is given to the close function of the same
 *     name; after that it must not be used. A store may be closed before its pools. Objects
 *     belong to their pool: they are valid from durum_root or durum_malloc until durum_free has
 *     committed or the pool's last handle is closed, and again, at the same address, when it is
 *     opened again. Strings and options passed in are read during the call only.
 *
 *  2. Errors. Functions that give a pointer return NULL on failure, all others a code: DURUM_OK
 *     (0) or DURUM_E_*. durum_errorcode() and durum_errormsg() give code and message of the
 *     thread's latest failure; success does not reset them, except that a transaction that has
 *     committed sets DURUM_OK. The hundreds digit of a code is its group: 1 the caller misused
 *     durum, 2 the input was refused, 3 data is damaged, 4 the system failed, 5 durum is wrong
 *     (DURUM_E_GROUP). A failed function has changed nothing, unless its text says otherwise.
 *     DURUM_E_ARGUMENT is any NULL, string or number that cannot be; but a NULL store, pool or
 *     log keeps the failure on record, if there is one: a chain of calls can be checked at its
 *     end.
 *
 *  3. Threads. Stores, pools and types may be used by all threads at once, closing excepted. A
 *     transaction belongs to the thread that began it. Transactions do not isolate: what
 *     threads share needs the program's own locks, held until the transaction has ended, or is
 *     changed by durum_pool_update and read by durum_pool_read. A log is used by one thread at a
 *     time. No function but durum_pool_update may be called by a thread that is being cancelled
 *     (pthread_setcancelstate). After fork(), the child may only open stores of its own, and
 *     only if none was open in the parent when it was forked, and no thread was in a call.
 *
 *  4. Strings end with NUL. Names of pools, types and fields are UTF-8; paths are any bytes
 *     that the system accepts. Sizes are in bytes.
 *
 *  5. Durability. What a transaction announced (durum_tx_add), deferred (durum_tx_redo_set),
 *     allocated and freed is durable when its outermost level has committed: it survives the
 *     end of the process in every domain, and the loss of power in all but DURUM_DOMAIN_DRAM
 *     (durum_store_domain). DURUM_BUFFERED transactions are so a little later, and when their
 *     pool is closed. A store that nobody announced may be lost or half kept, also without a
 *     crash. Closing is not needed for durability otherwise.
 *
 *  6. Memory. When the system has no memory left for durum's own bookkeeping, the process ends,
 *     which is a crash like any other. No Rust panic and no C++ exception leaves a durum
 *     function; none may be thrown through one.
 *
 *  7. Services. `durum:` and `durum+unix:SOCKET` in the place of a path name the store of a durumd,
 *     which programs use at the same time, each pool being one program's, or read by any number of
 *     them (DURUM_POOL_READ_ONLY). Transactions do not ask it, and go on while it is away. What
 *     does ask it (pools opened, made, removed and growing, the first use of a type) waits 10
 *     seconds for it to come back, and then fails with DURUM_E_SERVICE_GONE.
 *
 *  8. Pools that are only read. What would begin a transaction on a pool that is open with
 *     DURUM_POOL_READ_ONLY, or change it, fails with DURUM_E_READ_ONLY.
 */

#ifndef DURUM_H
#define DURUM_H


#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <type_traits>
#endif

/* The result says whether the program may go on: looking at it is not optional. */
#define DURUM_MUST_CHECK __attribute__((__warn_unused_result__))


// No error.
#define DURUM_OK 0

// Misuse that has no code of its own.
#define DURUM_E_CALLER 100

// A pointer is NULL that must not be, a string is not UTF-8, or a number is out of its range.
#define DURUM_E_ARGUMENT 101

// The range does not lie in an open pool of the store.
#define DURUM_E_NOT_IN_POOL 102

// No live object starts at the address: it was freed before, or never allocated.
#define DURUM_E_NOT_ALLOCATED 103

// The range has a pending redo set in this transaction.
#define DURUM_E_PENDING_SET 104

// Pools that cannot commit together.
#define DURUM_E_MIXED_ENGINES 105

// A transaction on another store runs on this thread.
#define DURUM_E_OTHER_STORE 106

// The transaction was aborted by the program; nothing of it was kept.
#define DURUM_E_ABORTED 107

// No transaction runs on this thread.
#define DURUM_E_NO_TRANSACTION 108

// This process was forked while a store was open.
#define DURUM_E_FORKED 109

// An object too large or with too large an alignment.
#define DURUM_E_OBJECT_SIZE 110

// The checker found stores that were not announced.
#define DURUM_E_UNANNOUNCED 111

// A low-level log was used in a way that it cannot be.
#define DURUM_E_LOG_MISUSE 112

// A type declaration that contradicts itself or another one of the same name.
#define DURUM_E_TYPE 113

// The pool is open and the operation needs it closed.
#define DURUM_E_POOL_OPEN 114

// A DURUM_TX_BEGIN block was left by return, break, continue or goto; its transaction was aborted.
#define DURUM_E_BLOCK_LEFT 115

// Begin and end of transactions do not match.
#define DURUM_E_UNBALANCED 116

// The operation cannot be done while a transaction runs on this thread.
#define DURUM_E_IN_TRANSACTION 117

// Another thread's transaction is making the pool's root: ask for it after that one.
#define DURUM_E_ROOT_PENDING 118

// The pool's engine has no sections: announce what changes, or use DURUM_ENGINE_SHADOW.
#define DURUM_E_SECTION_ENGINE 119

// The transaction changes more than can be logged at once: split it into several.
#define DURUM_E_TX_SIZE 120

// The thread reads, and an update would wait for that to end.
#define DURUM_E_UPDATE_IN_READ 121

// The pool has no copies that readers may read: it needs DURUM_ENGINE_TWIN and DURUM_POOL_LEFT_RIGHT.
#define DURUM_E_NO_COPIES 122

// The thread reads a copy, and a change would wait for that to end.
#define DURUM_E_READS_COPY 123

// The pool's root was to be freed, which lives as long as the pool.
#define DURUM_E_ROOT_FREED 124

// The checker found a pointer that leads out of the store.
#define DURUM_E_POINTER_OUTSIDE 125

// The service does not know this process any more, because it took it for gone and recovered its pools: close pools
// and store, and open them again.
#define DURUM_E_CLIENT_UNKNOWN 126

// The pool is open for reading only (DURUM_POOL_READ_ONLY). Nothing was changed.
#define DURUM_E_READ_ONLY 127

// A refusal that has no code of its own.
#define DURUM_E_USER 200

// There is no store at the path.
#define DURUM_E_STORE_MISSING 201

// Something is already at the path where a store was to be made.
#define DURUM_E_STORE_EXISTS 202

// Another opener holds the store.
#define DURUM_E_STORE_BUSY 203

// The store was not closed in order and the operation needs that.
#define DURUM_E_STORE_DIRTY 204

// The store has no pool of this name.
#define DURUM_E_POOL_MISSING 205

// The store has a pool of this name already.
#define DURUM_E_POOL_EXISTS 206

// A name that a pool cannot have.
#define DURUM_E_POOL_NAME 207

// Options that a store or a pool cannot be made with.
#define DURUM_E_OPTIONS 208

// The store's addresses are taken in this process, and it cannot be moved to others: the message says why.
#define DURUM_E_ADDRESS_CONFLICT 209

// The store has no free addresses left.
#define DURUM_E_ADDRESSES_EXHAUSTED 210

// The pool's root is of another type or size.
#define DURUM_E_ROOT_TYPE 211

// This version does not have the pool's engine.
#define DURUM_E_ENGINE_MISSING 212

// The files are of another kind or of another version of durum.
#define DURUM_E_FORMAT 213

// Another program has the pool of the service's store: it is free when that has closed it, or is gone.
#define DURUM_E_POOL_BUSY 214

// The service of the store has ended, and a client of it lives, which the message names. Nobody opens the directory
// meanwhile: start the service again, or end that program.
#define DURUM_E_STORE_SERVED 215

// A pool cannot be exported or imported so, and the message says why. Nothing was changed.
#define DURUM_E_SHIPPING 216

// A pool cannot be migrated so, and the message says everything that stands in the way. Nothing was changed.
#define DURUM_E_MIGRATION 217

// Bad data that has no code of its own.
#define DURUM_E_DATA 300

// A file is damaged, cut short or missing. Nothing was changed.
#define DURUM_E_DAMAGED 301

// A log that concerns this pool failed validation.
#define DURUM_E_QUARANTINED 302

// Media could not be read or written: the outcome is unknown until the store is closed and opened again.
#define DURUM_E_POISONED 303

// A file is in the way of the pool's recovery: bring it back. What recovery would write to the pool is kept.
#define DURUM_E_POOL_REFUSED 304

// What recovery would write to some pool is kept: the operation has to wait for it. Nothing was changed.
#define DURUM_E_PARTS_KEPT 305

// The registry is older than the store's puddles. Nothing was changed.
#define DURUM_E_REGISTRY_OLDER 306

// A failure of the system that has no code of its own.
#define DURUM_E_SYSTEM 400

// The file system is full. What exists is as before.
#define DURUM_E_STORAGE_FULL 401

// An operation of the system failed.
#define DURUM_E_IO 402

// The process gets no addresses or private memory for the store: a limit (`ulimit -v`, `ulimit -d`, the number of
// mappings), which the message names with the cure.
#define DURUM_E_ADDRESS_SPACE 403

// The service cannot be reached, or does not answer. Transactions on pools that are open go on; what needs the service
// has waited some seconds for it to come back.
#define DURUM_E_SERVICE_GONE 404

// durum itself is wrong; please report it with the message.
#define DURUM_E_INTERNAL 500

// Bytes without pointers, about which no more is known.
#define DURUM_KIND_BYTES 0

// Unsigned, 8 bits.
#define DURUM_KIND_U8 1

// Unsigned, 16 bits.
#define DURUM_KIND_U16 2

// Unsigned, 32 bits.
#define DURUM_KIND_U32 3

// Unsigned, 64 bits.
#define DURUM_KIND_U64 4

// Signed, 8 bits.
#define DURUM_KIND_I8 5

// Signed, 16 bits.
#define DURUM_KIND_I16 6

// Signed, 32 bits.
#define DURUM_KIND_I32 7

// Signed, 64 bits.
#define DURUM_KIND_I64 8

// IEEE 754, 32 bits.
#define DURUM_KIND_F32 9

// IEEE 754, 64 bits.
#define DURUM_KIND_F64 10

// One byte, 0 or 1.
#define DURUM_KIND_BOOL 11

// A pointer: to the type of `target`, or to what is called `target_name`, or to anything.
#define DURUM_KIND_POINTER 20

// A struct in the struct: the type of `target`.
#define DURUM_KIND_STRUCT 21

// Bytes that mean nothing after the program has ended: locks and the like.
#define DURUM_KIND_VOLATILE 22

// Bytes that are zero until a later version of the type has fields there.
#define DURUM_KIND_RESERVED 23

// No field: the one of this name was called `target_name` before.
#define DURUM_KIND_WAS 30

// No field: the one of this name may lie in bytes that were reserved.
#define DURUM_KIND_IN_RESERVED 31

// No field: the type was called `target_name` before.
#define DURUM_KIND_TYPE_WAS 32

// The count of a flexible array member.
#define DURUM_COUNT_TAIL UINT64_MAX

// The domain that the store's file system has.
#define DURUM_DOMAIN_DETECT 0

// Persistent memory: survives power loss.
#define DURUM_DOMAIN_DAX 1

// Memory (tmpfs): survives the end of the process only.
#define DURUM_DOMAIN_DRAM 2

// An ordinary file system, synced at each commit: survives power loss.
#define DURUM_DOMAIN_FILE 3

// Memory with the delays of STT-RAM, for measurements.
#define DURUM_DOMAIN_EMULATED_STT_RAM 4

// Memory with the delays of phase-change memory, for measurements.
#define DURUM_DOMAIN_EMULATED_PCM 5

// As the environment variable DURUM_MAPPING says (`eager`, `on-demand`, `userfaultfd`, `signal`); DURUM_MAPPING_EAGER
// where it is not set.
#define DURUM_MAPPING_DEFAULT 0

// Puddles are mapped when their pool is opened.
#define DURUM_MAPPING_EAGER 1

// Puddles are mapped when they are needed: by userfaultfd where the system has it, else by a SIGSEGV handler, else as
// DURUM_MAPPING_EAGER.
#define DURUM_MAPPING_ON_DEMAND 2

// Puddles are mapped when they are needed: the kernel stops a thread that accesses one, and a thread of durum's maps
// it.
#define DURUM_MAPPING_USERFAULTFD 3

// Puddles are mapped when they are needed: a SIGSEGV handler asks a thread of durum's. The program must not block that
// signal, nor take the handler away.
#define DURUM_MAPPING_SIGNAL 4

// On the FILE domain, commits write home what was logged themselves; no thread of the store's does.
#define DURUM_STORE_NO_CHECKPOINT_THREAD 1

// DURUM_BUFFERED transactions are durable when their commit returns: the window is 0.
#define DURUM_STORE_NO_BUFFERING 2

// Objects without a known type hold no pointers. Of two stores of a process that have the same addresses, as copies of
// one store have, the one that is opened later is moved to others; with such objects that needs this promise.
#define DURUM_STORE_UNTYPED_HOLD_NO_POINTERS 4

// An access to a pool of the store that is not open, through a pointer in another pool, is SIGSEGV. Where none of the
// DURUM_STORE_FOLLOW_* is set, this is so with DURUM_MAPPING_EAGER, and else it is as DURUM_STORE_FOLLOW_WRITING.
#define DURUM_STORE_FOLLOW_NEVER 8

// An access to a pool of the store that is not open opens it for reading only, until the last handle of the store is
// closed. Where the service refuses, it is SIGSEGV, and the log says which pool and why. It takes a handler of
// SIGSEGV, which the program must not take away; a system call that is given such an address fails with EFAULT.
#define DURUM_STORE_FOLLOW_READING 16

// As DURUM_STORE_FOLLOW_READING, but the pool is opened for writing where the user may write it.
#define DURUM_STORE_FOLLOW_WRITING 32

// Code that programs have left to complete their sections (durumcc -fido) is not run when their pools are opened.
#define DURUM_STORE_NO_CODE 64

// Others of the same user may watch the program while it has the store open (`durum stat --watch`): a thread of the
// store's answers them at a socket in $XDG_RUNTIME_DIR/durum, /run/user/UID/durum or /tmp/durum-UID. Nothing of the
// program waits for them.
#define DURUM_STORE_OBSERVE 128

// No thread of the store's makes pages ahead of a pool of the Shadow engine that grows: commits wait for them.
#define DURUM_STORE_NO_PAGES_AHEAD 256

// The engine that new pools get by default: Shadow.
#define DURUM_ENGINE_DEFAULT 0

// Undo and redo logs, changes in place.
#define DURUM_ENGINE_HYBRID 1

// Two copies, main and back.
#define DURUM_ENGINE_TWIN 2

// Private pages and one redo record for each commit.
#define DURUM_ENGINE_SHADOW 3

// A page that cannot be read does not end the process: it is replaced by a private one, and the next call returns
// DURUM_E_POISONED.
#define DURUM_POOL_SURVIVE_MEDIA_ERRORS 1

// Each commit looks for stores that were not announced (DURUM_E_UNANNOUNCED), and for pointers that lead out of the
// store (DURUM_E_POINTER_OUTSIDE). Slow, for tests.
#define DURUM_POOL_CHECK_STORES 2

// Sections find what has changed by userfaultfd (Linux 6.7), or fail. Without this and the next one: the best that the
// system has.
#define DURUM_POOL_TRACK_USERFAULTFD 4

// Sections find what has changed by mprotect and a SIGSEGV handler. System calls that write to a page of the pool then
// fail (EFAULT) in a section.
#define DURUM_POOL_TRACK_MPROTECT 8

// Nobody keeps threads apart in durum_pool_update and durum_pool_read: for programs in which one thread at a time uses
// the pool.
#define DURUM_POOL_SINGLE_THREADED 16

// A pool of DURUM_ENGINE_TWIN: a commit copies all that is in use, where it differs, and not what was announced. For
// comparisons, and for pools of some pages.
#define DURUM_POOL_BASIC_COPIES 32

// A pool of DURUM_ENGINE_TWIN: threads may read it beside a transaction, without waiting (durum_pool_read_copy).
#define DURUM_POOL_LEFT_RIGHT 64

// The pool is only read. Any number of programs may do that at the same time, where a service serves the store. What
// would change it fails with DURUM_E_READ_ONLY, and a plain store to it ends the process (SIGSEGV). Nothing is made:
// one that is not there is DURUM_E_POOL_MISSING.
#define DURUM_POOL_READ_ONLY 128

// Pools to which pointers of the pool lead are exported with it, and those to which theirs lead.
#define DURUM_EXPORT_WITH_REFERENCED 1

// One file, a tar archive, instead of a directory.
#define DURUM_EXPORT_ARCHIVE 2

// The archive is compressed, as by gzip. Implies DURUM_EXPORT_ARCHIVE.
#define DURUM_EXPORT_COMPRESSED 4

// The export stays as it is, and the store gets copies of its files.
#define DURUM_IMPORT_COPY 1

// All contents are compared with their sums now, not when each puddle is first mapped.
#define DURUM_IMPORT_VERIFY 2

// Objects without a known type hold no pointers. Without that promise an export that has some is refused where it
// cannot have the addresses that it had.
#define DURUM_IMPORT_UNTYPED_HOLD_NO_POINTERS 4

// Nothing is written: what stands in the way is told.
#define DURUM_MIGRATE_PLAN 1

// Objects without a known type hold no pointers, and stay as they are.
#define DURUM_MIGRATE_UNTYPED_HOLD_NO_POINTERS 2

// The transaction is durable when its commit returns.
#define DURUM_DURABLE 0

// The transaction is durable soon after its commit has returned: a crash loses at most what was committed within the
// store's `buffered_window_us` before it. The order stays: once a later durable transaction has committed, it cannot
// be lost. On other engines than DURUM_ENGINE_SHADOW the same as DURUM_DURABLE.
#define DURUM_BUFFERED 1

// The block's body runs.
#define DURUM_BLOCK_RUNNING 1

// The block has committed.
#define DURUM_BLOCK_COMMITTED 2

// The block has not begun, or was aborted.
#define DURUM_BLOCK_ABORTED 3

// For DURUM_TX_BEGIN_WITH, beside DURUM_DURABLE or DURUM_BUFFERED: the block may commit after an allocation in it has
// failed. The program looks itself at what it gets.
#define DURUM_ALLOC_MAY_FAIL 2

// Applied before all entries without this flag, the last one first. For undo.
#define DURUM_LOG_REVERSE 1

// The target is volatile memory: durum_log_apply writes it, recovery ignores it.
#define DURUM_LOG_VOLATILE 2

// The sequence number by which durum marks undo entries: they count in the range (0, 2).
#define DURUM_SEQUENCE_UNDO 1

// The sequence number by which durum marks redo entries: they count in the range (2, 4).
#define DURUM_SEQUENCE_REDO 3

// A log of the program's own. Opaque; one thread at a time uses it.
typedef struct durum_log durum_log;

// An open pool. Opaque.
typedef struct durum_pool durum_pool;

// An open store. Opaque.
typedef struct durum_store durum_store;

// A field in a type declaration. The macros DURUM_FIELD, DURUM_PTR and their relatives make them.
typedef struct durum_field {
    // Its name.
    const char *name;
    // Its offset in bytes.
    uint64_t offset;
    // Bytes of one element.
    uint64_t size;
    // Elements of an array; 0: no array; DURUM_COUNT_TAIL: a flexible array member.
    uint64_t count;
    // Its alignment in bytes.
    uint32_t align;
    // One of DURUM_KIND_*.
    uint32_t kind;
    // What it points to where `target` is NULL: a number by name, "" for the struct itself, NULL for anything.
    const char *target_name;
    // The declaration of the type that it points to or consists of.
    struct durum_type *(*target)(void);
} durum_field;

// A declared type. DURUM_TYPE makes one, DURUM_TYPE_OF finds it; it lasts as long as the program.
typedef struct durum_type {
    // Its language-neutral name.
    const char *name;
    // sizeof.
    uint64_t size;
    // Its alignment in bytes.
    uint64_t align;
    // Its fields.
    const struct durum_field *fields;
    // How many.
    uint64_t field_count;
    // durum's own; NULL at first.
    void *known;
} durum_type;

// How a store is made and opened. Start from DURUM_STORE_OPTIONS_INIT.
typedef struct durum_store_options {
    // sizeof(durum_store_options).
    uint64_t struct_size;
    // The base of the store's address range, a multiple of 2 MiB; fixed when the store is made. 0: durum's choice.
    uint64_t base;
    // One of DURUM_DOMAIN_*. Claiming DAX for a file system that is not loses data.
    uint32_t domain;
    // What a crash may lose of DURUM_BUFFERED transactions, in microseconds before it. 0: durum's choice, 10,000
    // (DURUM_STORE_NO_BUFFERING: none).
    uint32_t buffered_window_us;
    // Bytes that the logs of SHADOW pools may grow to before a commit waits until home places are up to date: recovery
    // reads about that much. 0: durum's choice, 64 MiB.
    uint64_t log_max;
    // Bytes of private memory that SHADOW pools may keep together; above, pages are given back, so that a pool may be
    // larger than memory (docs/internals/engines.md says what a program has to know about it). 0: durum's choice, a
    // quarter of the memory that the process may use; 1: as little as can be; UINT64_MAX: no limit.
    uint64_t private_max;
    // Bytes of addresses for the puddles of the store, a multiple of 2 MiB; fixed when the store is made. 0: durum's
    // choice, 1 TiB. A process reserves twice as much where its limit of address space (`ulimit -v`) lets it, and what
    // it needs where not.
    uint64_t space;
    // Bytes by which pools may grow while the store is open for which addresses are reserved when it is opened, where
    // the process cannot reserve all of the space. 0: none; pools grow until the limit is met.
    uint64_t growth;
    // DURUM_STORE_* in any combination.
    uint32_t flags;
    // One of DURUM_MAPPING_*. Where puddles are mapped when they are needed, a system call that is given an address in
    // one that is not mapped yet fails with EFAULT: call durum_touch before.
    uint32_t mapping;
} durum_store_options;

// How a pool is made, and how it is used while it is open. Start from DURUM_POOL_OPTIONS_INIT.
typedef struct durum_pool_options {
    // sizeof(durum_pool_options).
    uint64_t struct_size;
    // Bytes of the puddle that holds the root, a multiple of 2 MiB; fixed when the pool is made. 0: 2 MiB.
    uint64_t root_puddle_size;
    // One of DURUM_ENGINE_*; fixed when the pool is made.
    uint32_t engine;
    // DURUM_POOL_* in any combination.
    uint32_t flags;
} durum_pool_options;

// What becomes of a type in durum_pool_migrate and durum_pools_migrate.
typedef struct durum_migrated_type {
    // The type as the pool has it: DURUM_TYPE_OF of a struct that is declared as the earlier version declared it.
    // NULL: the types of the name that `now` has or had.
    struct durum_type *was;
    // What it becomes.
    struct durum_type *now;
    // Makes the new value, all of which is zero before, of the old one. Pointers are copied as they are, those that
    // own something once each; they follow later. It may look at whatever the old value leads to, is asked twice for
    // each object, and makes the same both times. A result other than 0 refuses the migration. NULL: fields are those
    // of the same names.
    int (*make)(const void *was, void *now, void *argument);
    // What `make` gets besides.
    void *argument;
} durum_migrated_type;

// A pool in durum_pools_migrate.
typedef struct durum_migrated_pool {
    // Its name.
    const char *name;
    // What the type of its root becomes.
    struct durum_type *root;
} durum_migrated_pool;

// A field in durum_migrate, of which no function says what becomes of it.
typedef struct durum_migrated_field {
    // Its type's name, as the pool has it.
    const char *ty;
    // Its name: that of the new field, which has a default, or of the old one, which is forgotten.
    const char *name;
    // DURUM_KIND_* of a number, which is its default; DURUM_KIND_BYTES: it goes though it holds pointers.
    uint32_t kind;
    // The default.
    const void *value;
} durum_migrated_field;

// A map in durum_migrate that is built anew as its keys have changed, or how they compare: a durum::map, whose
// declarations durum::migration has.
typedef struct durum_migrated_map {
    // What it is now.
    struct durum_type *map;
    // Its nodes.
    struct durum_type *node;
    // The entries in these, whose field `first` is the key.
    struct durum_type *entry;
    // Where the map has the address of its first node.
    uint64_t root;
    // Where it has the number of its entries.
    uint64_t size;
    // Where a node has its key.
    uint64_t key;
    // Where it has the address of the node that lies before it, below.
    uint64_t left;
    // Of that behind it, below.
    uint64_t right;
    // Of that above.
    uint64_t up;
    // Where it has its weight: those below have none that is more.
    uint64_t weight;
    // Whether a key lies before another one: 1 or 0. Another result refuses the migration.
    int (*is_less)(const void *left, const void *right, void *argument);
    // What `is_less` gets besides.
    void *argument;
} durum_migrated_map;

// How pools are made anew by durum_migrate. Start from DURUM_MIGRATION_INIT.
typedef struct durum_migration {
    // sizeof(durum_migration).
    uint64_t struct_size;
    // The pools.
    const struct durum_migrated_pool *pools;
    // How many.
    size_t pool_count;
    // What becomes of types, of all of them.
    const struct durum_migrated_type *types;
    // How many.
    size_t type_count;
    // What becomes of fields.
    const struct durum_migrated_field *fields;
    // How many.
    size_t field_count;
    // Maps that are built anew.
    const struct durum_migrated_map *maps;
    // How many.
    size_t map_count;
    // DURUM_MIGRATE_* in any combination.
    uint32_t flags;
} durum_migration;

// What durum_migrate has done, or would do.
typedef struct durum_migration_report {
    // Objects, of all pools, as all that follows.
    uint64_t objects;
    // Maps that were built anew.
    uint64_t rebuilt_maps;
    // Bytes of the files before.
    uint64_t old_bytes;
    // Bytes of the new files.
    uint64_t bytes;
    // New puddles.
    uint64_t puddles;
    // Bytes that are needed besides while it goes on.
    uint64_t scratch_bytes;
} durum_migration_report;

// `len` bytes at `ptr`.
typedef struct durum_range {
    // Where they begin.
    const void *ptr;
    // How many there are.
    size_t len;
} durum_range;

// A word that was announced, and what it held. For durum.h itself, as Words is.
typedef struct durum_word_ {
    // Its address divided by 8.
    size_t number;
    // What it held, each bit inverted.
    uint64_t inverted;
} durum_word_;

// Where the thread's transaction takes words without a call of the library. For durum.h itself, whose durum_tx_add
// puts them there; another layout has another number in the name of durum_words_2.
typedef struct durum_words_ {
    // The first address of which words are taken, and how many words are; 0: none.
    size_t first;
    size_t count;
    // Where the next word goes, behind one that came before or is none; and where there is no more room.
    struct durum_word_ *next;
    struct durum_word_ *end;
} durum_words_;

// What an update or a read runs. Not 0: an update is not to be kept.
typedef int (*durum_body)(void *arg);

// The copy of a pool that a reader sees.
typedef struct durum_copy {
    // What to add to the address of an object of the pool to read it: 0, or the distance between the copies.
    size_t distance;
    // The first address at which objects may lie. What lies elsewhere, or 0, is not to be moved.
    size_t start;
    // The bytes from there in which they do.
    size_t size;
} durum_copy;

// What durum_pool_read_copy runs. `copy` is valid until it returns.
typedef int (*durum_copy_body)(const struct durum_copy *copy, void *arg);

// The state of one DURUM_TX_BEGIN block. The macros make and use it.
typedef struct durum_block {
    // The block around it on this thread.
    struct durum_block *outer;
    // Where it begins in the program.
    const char *file;
    int line;
    // DURUM_BLOCK_*.
    int state;
    // Its level in the transaction, from 1.
    uint32_t level;
    // Whether it was begun with DURUM_ALLOC_MAY_FAIL.
    int alloc_may_fail;
    // The code of the first allocation that failed in it otherwise; DURUM_OK: none.
    int failed;
} durum_block;

// Counts of one thread, which only grow: take the difference of two.
typedef struct durum_stats {
    // Fences on mapped memory.
    uint64_t fences;
    // Cache lines written back.
    uint64_t write_backs;
    // Cache lines stored past the cache.
    uint64_t streamed_lines;
    // Syncs of files and directories.
    uint64_t syncs;
    // Bytes of log entries.
    uint64_t bytes_logged;
    // Bytes that were written to become durable.
    uint64_t bytes_written;
    // Transactions that changed something and committed.
    uint64_t commits;
    // Transactions that changed something and were rolled back.
    uint64_t aborts;
} durum_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The code of this thread's latest failure; DURUM_OK if there was none, or if a transaction has committed since.
//
// In DURUM_TX_ONABORT it tells why the block did not commit.
int durum_errorcode(void);

// The message of this thread's latest failure, for people; "" if there was none. It names files and offsets, and says
// what to do.
//
// The string belongs to durum and is valid until the thread's next failure.
const char *durum_errormsg(void);

// The version of the library, as in "1.2.3". The string is constant.
const char *durum_version(void);

// The id of a type: a hash of its canonical text (docs/format/types.md), the same in every language. 0 on failure:
// DURUM_E_TYPE a declaration that contradicts itself, or two of one name; DURUM_E_ARGUMENT.
uint64_t durum_type_id(struct durum_type *type);

// Opens the store in the directory `path`. If its last user died, its logs are replayed first, without that program's
// code.
//
// `durum:` is the store of this machine's service (durumd), `durum+unix:SOCKET` that of the service at a socket. Other
// programs use it at the same time; each pool is one program's. A directory of such a name is `./durum:`.
//
// `options` may be NULL: the defaults. Close the store with durum_store_close.
//
// Returns NULL on failure; the store is as before then:
// DURUM_E_STORE_MISSING nothing is there; DURUM_E_STORE_BUSY another process, or this one, has it open;
// DURUM_E_ADDRESS_CONFLICT its addresses are taken in this process; DURUM_E_ADDRESS_SPACE the process gets none;
// DURUM_E_FORMAT it is of another version; DURUM_E_DAMAGED, DURUM_E_QUARANTINED, DURUM_E_REGISTRY_OLDER what the
// message says; DURUM_E_STORE_SERVED a client of its service lives, which has ended; DURUM_E_SERVICE_GONE no service
// is at the socket; DURUM_E_OPTIONS the service works in another domain; DURUM_E_USER no store can be at the path, or
// the service does not admit this user; DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
struct durum_store *durum_store_open(const char *path,
                                     const struct durum_store_options *options);

// Makes a store in the directory `path`, which must not exist yet, and opens it. It exists durably on return.
//
// Returns NULL on failure, and leaves nothing behind:
// DURUM_E_STORE_EXISTS, for a service's store always; DURUM_E_USER no store can be made at the path, whose parent
// directory is missing, say; DURUM_E_OPTIONS a base that no store can have; DURUM_E_STORAGE_FULL, DURUM_E_IO,
// DURUM_E_ARGUMENT; DURUM_E_ADDRESS_CONFLICT the store was made, but something else uses its addresses in this
// process.
DURUM_MUST_CHECK
struct durum_store *durum_store_create(const char *path,
                                       const struct durum_store_options *options);

// Opens the store in the directory `path`, or makes it if nothing is there. Returns NULL on failure, with the codes of
// durum_store_open and durum_store_create.
DURUM_MUST_CHECK
struct durum_store *durum_store_open_or_create(const char *path,
                                               const struct durum_store_options *options);

// The persistence domain of the store, one of DURUM_DOMAIN_*: what its commits survive. DURUM_DOMAIN_DETECT if `store`
// is NULL.
uint32_t durum_store_domain(const struct durum_store *store);

// Closes the pools that are open because pointers led there (DURUM_STORE_FOLLOW_*) and that the program has no handle
// of, so that others may have them. The next access opens them again. NULL is allowed.
void durum_store_let_go(const struct durum_store *store);

// Gives the handle back. NULL is allowed. The store itself closes when its last pool and log are closed, too; what was
// committed is durable whether it is closed or not.
int durum_store_close(struct durum_store *store);

// Opens a pool of the store. A pool that is open in this process already gives another handle to it. `options` may be
// NULL: the defaults. Close each handle with durum_pool_close.
//
// Returns NULL on failure:
// DURUM_E_POOL_MISSING; DURUM_E_POOL_BUSY another client of the store's service writes it, or reads it
// (DURUM_POOL_READ_ONLY) and it is to be written; DURUM_E_POOL_OPEN this process has it open in one of these ways, and
// asks for the other; DURUM_E_QUARANTINED a log that concerns it failed validation; DURUM_E_POOL_REFUSED a file of it
// is missing or damaged; DURUM_E_NO_COPIES the flags are about copies, and its engine is not DURUM_ENGINE_TWIN;
// DURUM_E_ENGINE_MISSING, DURUM_E_ADDRESS_CONFLICT, DURUM_E_DAMAGED, DURUM_E_POISONED, DURUM_E_FORKED,
// DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
struct durum_pool *durum_pool_open(struct durum_store *store,
                                   const char *name,
                                   const struct durum_pool_options *options);

// Makes a pool in the store and opens it. It exists durably on return.
//
// Returns NULL on failure, and leaves nothing behind:
// DURUM_E_POOL_EXISTS; DURUM_E_POOL_NAME a name that a pool cannot have; DURUM_E_OPTIONS a size that is no multiple of
// 2 MiB; DURUM_E_READ_ONLY a new pool has nothing to read; DURUM_E_ENGINE_MISSING, DURUM_E_STORAGE_FULL,
// DURUM_E_ADDRESSES_EXHAUSTED, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
struct durum_pool *durum_pool_create(struct durum_store *store,
                                     const char *name,
                                     const struct durum_pool_options *options);

// Opens a pool, or makes it if the store has none of this name. Returns NULL on failure, with the codes of
// durum_pool_open and durum_pool_create.
DURUM_MUST_CHECK
struct durum_pool *durum_pool_open_or_create(struct durum_store *store,
                                             const char *name,
                                             const struct durum_pool_options *options);

// Makes every DURUM_BUFFERED transaction of the pool durable that has committed before, in any thread. They are
// durable on return.
//
// DURUM_E_POISONED which of them are durable is unknown; DURUM_E_STORAGE_FULL, DURUM_E_IO they are not durable, and
// are tried again later; DURUM_E_FORKED, DURUM_E_ARGUMENT.
DURUM_MUST_CHECK
int durum_pool_sync(struct durum_pool *pool);

// Makes room: afterwards at least `bytes` of the pool are free, so that transactions that allocate as much need not
// wait while it grows. The room stays as long as the pool is open; what is not used by then goes when it is closed.
//
// DURUM_E_STORAGE_FULL the file system has no such room, and the pool is as large as before; DURUM_E_IO,
// DURUM_E_DAMAGED, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT.
DURUM_MUST_CHECK
int durum_pool_reserve(struct durum_pool *pool,
                       uint64_t bytes);

// Gives the handle back. NULL is allowed. The pool closes with its last handle: its objects are not mapped any more
// then. No thread may be in a transaction on the pool.
//
// DURUM_E_IN_TRANSACTION if this thread's transaction, update or read began on this handle; the handle stays valid.
int durum_pool_close(struct durum_pool *pool);

// Removes a pool and everything in it. It is durably gone on return.
//
// DURUM_E_POOL_MISSING; DURUM_E_POOL_OPEN close all its handles first; DURUM_E_POOL_BUSY another client of the store's
// service has it; DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_pool_remove(struct durum_store *store,
                      const char *name);

// Takes objects of the pool whose type has the id `found` as objects of `type`, and so all that pointers lead to from
// there: for a program that keeps ids beside objects of its own. A newer version of the type becomes their type,
// durably (docs/how-to/change-types.md). Returns 0 or
// DURUM_E_ROOT_TYPE they are of another type, or of a newer version; DURUM_E_TYPE, DURUM_E_POISONED, DURUM_E_FORKED,
// DURUM_E_ARGUMENT, DURUM_E_IO.
int durum_pool_take_type(struct durum_pool *pool,
                         uint64_t found,
                         struct durum_type *type);

// Whether types of the pool have changed since objects of them were stored: 1 or 0. Also 0 with DURUM_E_ARGUMENT.
int durum_pool_has_old_types(struct durum_pool *pool);

// The root object of the pool: made now, all bytes zero and durable, if the pool has none yet. `type` may be NULL:
// bytes without pointers. Inside a transaction the making is part of it.
//
// Returns NULL on failure:
// DURUM_E_ROOT_TYPE the pool's root is of another type or size; DURUM_E_ROOT_PENDING another thread's transaction is
// making it; DURUM_E_READ_ONLY it has none, and the pool is only read; DURUM_E_OBJECT_SIZE it does not fit into the
// root puddle; DURUM_E_TYPE a type declared in two ways; DURUM_E_DAMAGED, DURUM_E_POISONED, DURUM_E_FORKED,
// DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
void *durum_root(struct durum_pool *pool,
                 struct durum_type *type,
                 size_t size);

// Exports a pool that nobody has open for writing: makes a directory `place`, which must not exist yet, with the pool
// as it is in memory and the descriptors of its types. `flags` are DURUM_EXPORT_* in any combination. It is durable on
// return.
//
// DURUM_E_POOL_MISSING; DURUM_E_POOL_OPEN close all its handles first; DURUM_E_POOL_BUSY another client of the store's
// service writes it; DURUM_E_SHIPPING pointers lead to other pools, or something has that name; DURUM_E_DAMAGED,
// DURUM_E_STORAGE_FULL, DURUM_E_OPTIONS, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_pool_export(struct durum_store *store,
                      const char *name,
                      const char *place,
                      uint32_t flags);

// Exports `count` pools of one store that the program has open, as they are at one moment, while its threads go on:
// makes a directory `place`, as durum_pool_export, named by the first. It holds what was committed before, and nothing
// that is committed later. `flags` are DURUM_EXPORT_ARCHIVE and DURUM_EXPORT_COMPRESSED. For `wait_ms` milliseconds at
// most a moment is waited for at which no transaction of the store is open. It is durable on return.
//
// What the program stores without announcing it (locks, what it makes durable by durum_persist) may be in the export
// as it was at any moment.
//
// DURUM_E_SHIPPING a transaction stays open, or is open on this thread; a pool is of another store; pointers lead to
// pools that are not among these; something has that name. DURUM_E_READ_ONLY, DURUM_E_DAMAGED, DURUM_E_STORAGE_FULL,
// DURUM_E_OPTIONS, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_pool_snapshot(struct durum_pool *const *pools,
                        size_t count,
                        const char *place,
                        uint32_t flags,
                        uint64_t wait_ms);

// Imports what durum_pool_export has exported: as a pool of the same name (`name` NULL), or of another one. `flags`
// are DURUM_IMPORT_* in any combination. The pool is durable on return. On the same file system the export's files
// become the store's and the export is gone, unless DURUM_IMPORT_COPY.
//
// DURUM_E_POOL_EXISTS; DURUM_E_POOL_NAME; DURUM_E_SHIPPING it cannot be imported so; DURUM_E_FORMAT, DURUM_E_DAMAGED
// it is no whole export; DURUM_E_ADDRESSES_EXHAUSTED, DURUM_E_STORAGE_FULL, DURUM_E_TYPE, DURUM_E_OPTIONS,
// DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_pool_import(struct durum_store *store,
                      const char *place,
                      const char *name,
                      uint32_t flags);

// As durum_pool_import; but the puddles join a pool of the store, which must be of the same engine and not open. The
// root object becomes an object of it, whose address is put in `root` (NULL where there is none): it is garbage, with
// all that it leads to, until the program has something lead there.
//
// As durum_pool_import; DURUM_E_POOL_MISSING; DURUM_E_POOL_OPEN close all its handles first; DURUM_E_POOL_BUSY another
// client of the store's service has it; DURUM_E_QUARANTINED.
DURUM_MUST_CHECK
int durum_pool_import_into(struct durum_store *store,
                           const char *place,
                           const char *pool,
                           uint32_t flags,
                           void **root);

// Makes a pool anew in the store directory `store`, which nobody has open: every object becomes what the types of the
// program say there, which begin with that of the root (`root`), and what `types` say besides (`count` of them), in
// which a type lies that the root does not lead to, too. Fields are found by their names, or former ones. Pointers of
// all kinds lead to where things are then. `flags` are DURUM_MIGRATE_* in any combination.
//
// The pool is the old one until all of it is there, whatever happens; it is durable on return. It needs room for the
// pool once more.
//
// DURUM_E_MIGRATION something stands in the way, and the message says what: pointers of other pools into this one, for
// one, which durum_pools_migrate makes anew with it; DURUM_E_POOL_MISSING, DURUM_E_STORE_MISSING; DURUM_E_STORE_BUSY,
// DURUM_E_POOL_BUSY; DURUM_E_STORE_DIRTY a plan of a store that was not closed in order; DURUM_E_DAMAGED an object
// contradicts its type; DURUM_E_TYPE, DURUM_E_STORAGE_FULL, DURUM_E_ADDRESSES_EXHAUSTED, DURUM_E_ADDRESS_CONFLICT,
// DURUM_E_OPTIONS, DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_pool_migrate(const char *store,
                       const char *name,
                       struct durum_type *root,
                       const struct durum_migrated_type *types,
                       size_t count,
                       uint32_t flags);

// As durum_pool_migrate, for pools of one store that are made anew together, `pool_count` of them: pointers between
// them follow, and all are the old ones or all the new ones. `types` are those of all of them.
//
// The codes of durum_pool_migrate; DURUM_E_OPTIONS a pool is named twice; DURUM_E_ARGUMENT there is none.
DURUM_MUST_CHECK
int durum_pools_migrate(const char *store,
                        const struct durum_migrated_pool *pools,
                        size_t pool_count,
                        const struct durum_migrated_type *types,
                        size_t count,
                        uint32_t flags);

// As durum_pools_migrate, with all that can be said: `how` has the pools, what becomes of types and of fields, and
// which maps are built anew. `report` gets what was done, unless it is NULL.
//
// The codes of durum_pools_migrate; DURUM_E_ARGUMENT `how` was not made with DURUM_MIGRATION_INIT.
DURUM_MUST_CHECK
int durum_migrate(const char *store,
                  const struct durum_migration *how,
                  struct durum_migration_report *report);

// Allocates `size` bytes in the pool for an object of the type, or for several in a row. `type` may be NULL: bytes
// without pointers, aligned to 16. The bytes are whatever was there before.
//
// In a transaction the object exists durably, with what the program stored in it, once the transaction has committed;
// it needs no DURUM_TX_ADD. After an abort or a crash before, it was never allocated. Outside of a transaction this is
// a transaction of its own: the object exists on return, and is lost room if the program dies before something durable
// points to it.
//
// Returns NULL on failure. A transaction goes on, but a DURUM_TX_BEGIN block that forgets to look does not commit: it
// aborts at its end, unless it was begun with DURUM_ALLOC_MAY_FAIL. DURUM_E_OBJECT_SIZE; DURUM_E_STORAGE_FULL the pool
// had to grow and cannot; DURUM_E_TYPE a type declared in two ways; DURUM_E_MIXED_ENGINES, DURUM_E_NOT_IN_POOL the
// pool is of another store than the transaction; DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
DURUM_MUST_CHECK
void *durum_malloc(struct durum_pool *pool,
                   struct durum_type *type,
                   size_t size);

// As durum_malloc, with all bytes zero.
DURUM_MUST_CHECK
void *durum_malloc_zeroed(struct durum_pool *pool,
                          struct durum_type *type,
                          size_t size);

// Allocates a copy of the string, its NUL included, in the pool; durum_free frees it. Else as durum_malloc. Outside of
// a transaction the copy is durable on return.
//
// The codes of durum_malloc.
DURUM_MUST_CHECK
char *durum_strdup(struct durum_pool *pool,
                   const char *string);

// Frees an object that durum_malloc gave; NULL is allowed. In a transaction it is free once that has committed, and
// keeps its contents until then; outside of one this is a transaction of its own.
//
// DURUM_E_ROOT_FREED it is the pool's root; DURUM_E_NOT_ALLOCATED no live object starts there, as after a first free;
// DURUM_E_NOT_IN_POOL, also after a first free that left its puddle empty; DURUM_E_MIXED_ENGINES, DURUM_E_POISONED,
// DURUM_E_FORKED, DURUM_E_IO. Nothing is freed then.
int durum_free(void *ptr);

// Makes `len` bytes at `ptr`, in any open pool, durable as they are now, outside of any transaction. Not atomic: after
// a crash before it returns, any part of the range may be old. No other thread may change the range meanwhile.
//
// DURUM_E_NOT_IN_POOL, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_persist(const void *ptr,
                  size_t len);

// Sees to it that the puddle is mapped that `len` bytes at `ptr` lie in. For system calls: where puddles are mapped on
// demand (DURUM_MAPPING_*), one that is given an address in a puddle which is not mapped yet fails with EFAULT.
//
// DURUM_E_NOT_IN_POOL, DURUM_E_DAMAGED, DURUM_E_FORKED, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_touch(const void *ptr,
                size_t len);

// Whether the address lies in an open pool of this process, or in a copy of one (durum_pool_read_copy), where nobody
// may store: 1 or 0. Takes its time: for what fails, not for what works.
int durum_in_pool(const void *ptr);

// Begins a transaction on this thread, or one more level of the one that runs. End each level with durum_tx_commit or
// durum_tx_rollback. The handle must stay open until then. DURUM_TX_BEGIN is the safer way.
//
// DURUM_E_OTHER_STORE a transaction on another store runs; DURUM_E_READS_COPY the pool is of DURUM_ENGINE_TWIN, and
// the thread reads a copy; DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT. None begins then.
DURUM_MUST_CHECK
int durum_tx_begin(struct durum_pool *pool);

// As durum_tx_begin, for a transaction that is durable when `durability` says: DURUM_DURABLE or DURUM_BUFFERED. If
// several levels of a transaction say different things, it is durable when its outermost level has committed.
//
// The codes of durum_tx_begin; DURUM_E_ARGUMENT also for any other number.
DURUM_MUST_CHECK
int durum_tx_begin_with(struct durum_pool *pool,
                        uint32_t durability);

// Begins a section on this thread: a transaction in which everything in this pool may be changed by plain stores,
// without durum_tx_add, by code that knows nothing of durum. End it with durum_tx_commit or durum_tx_rollback, as a
// level of a transaction; inside a section of the same pool it is one more level of that one. The handle must stay
// open until then.
//
// On commit every word of the pool's objects that has changed is durable, or none is; on rollback all are as they were
// before. It waits until no other transaction of the store is open, and keeps new ones out until it has ended. No
// other thread may change the pool meanwhile in any other way. The thread holds nothing that another one waits for
// inside a transaction, and does not wait itself for one that does.
//
// DURUM_E_SECTION_ENGINE the pool's engine is not DURUM_ENGINE_SHADOW; DURUM_E_IN_TRANSACTION a transaction that is no
// section of this pool runs on this thread; DURUM_E_OTHER_STORE, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT;
// DURUM_E_IO the system cannot tell which pages change. None begins then.
DURUM_MUST_CHECK
int durum_section_begin(struct durum_pool *pool);

// Ends a level that durum_tx_begin or durum_section_begin began. On the outermost one, everything announced, allocated
// and freed is durable on return (soon after, if every level is DURUM_BUFFERED), all of it or, on failure, nothing.
//
// DURUM_E_ABORTED an inner level or durum_tx_abort has aborted it; DURUM_E_UNBALANCED the level belongs to a
// DURUM_TX_BEGIN block or an update; DURUM_E_NO_TRANSACTION; DURUM_E_UNANNOUNCED, DURUM_E_POINTER_OUTSIDE the checker
// found something; DURUM_E_POISONED the outcome is unknown; DURUM_E_FORKED, DURUM_E_STORAGE_FULL, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_tx_commit(void);

// As durum_tx_commit, without waiting until what the transaction has done is durable: durum_tx_wait does, by the
// number that is put into `in_flight`. Meanwhile the thread can do something else, the next transaction above all.
//
// When it returns, locks may be let go of, and other threads see what was done. After a crash the transaction is there
// as a whole or not at all. Of those that a thread has begun to commit at most the last is missing, and nothing is
// there without what it came after. Where other threads commit to the store, on a file system, for a transaction of
// more than about a kilobyte, on other engines than DURUM_ENGINE_SHADOW, and where buffered transactions wait, it is
// durable when this returns, and the number is 0. On an inner level this is durum_tx_commit.
//
// The codes of durum_tx_commit; DURUM_E_ARGUMENT `in_flight` is NULL, and the transaction goes on.
DURUM_MUST_CHECK
int durum_tx_commit_begin(uint64_t *in_flight);

// Waits until the transaction is durable for which durum_tx_commit_begin has given this number to this thread, and
// with it all that the thread has committed before. 0 is durable.
//
// DURUM_E_FORKED, DURUM_E_POISONED, DURUM_E_ARGUMENT.
DURUM_MUST_CHECK
int durum_tx_wait(struct durum_pool *pool,
                  uint64_t in_flight);

// Ends a level that durum_tx_begin or durum_section_begin began, without its changes: announced memory, allocations
// and registered volatile memory are as before. Inside an outer level the outer one can only roll back, too, and does
// it at its end.
//
// DURUM_E_UNBALANCED the level belongs to a DURUM_TX_BEGIN block or an update; DURUM_E_NO_TRANSACTION; DURUM_E_FORKED.
int durum_tx_rollback(void);

// How many levels of transaction run on this thread; 0: none.
uint32_t durum_tx_level(void);

// Announces that the program is about to change `len` bytes at `ptr`, in any open pool of the store.
//
// On return the old contents are safe: whatever is stored there, an abort or a crash before the commit brings them
// back, exactly these bytes. Ranges may overlap and repeat. The new contents are durable once the transaction has
// committed.
//
// DURUM_E_NO_TRANSACTION, DURUM_E_NOT_IN_POOL, DURUM_E_PENDING_SET, DURUM_E_MIXED_ENGINES, DURUM_E_POISONED,
// DURUM_E_FORKED; DURUM_E_STORAGE_FULL, DURUM_E_IO the log had to grow and cannot. Nothing is announced then: do not
// store. Of words in a page that cannot be read durum_tx_commit may be the first to say so.
DURUM_MUST_CHECK
int durum_tx_add(const void *ptr,
                 size_t len);

// Announces `count` ranges at once, each as durum_tx_add does; on a pool of DURUM_ENGINE_HYBRID with one fence for all
// of them.
//
// The codes of durum_tx_add, of the first range that cannot be announced: do not store to any of them.
// DURUM_E_ARGUMENT.
DURUM_MUST_CHECK
int durum_tx_add_all(const struct durum_range *ranges,
                     size_t count);

// Where this thread finds its Words, which are others with each transaction. The place stays until the thread has
// ended. For durum.h itself.
struct durum_words_ *const *durum_words_2(void);

// As durum_tx_add, without keeping the old contents: after an abort or a crash the range holds anything. Saves the log
// entry.
DURUM_MUST_CHECK
int durum_tx_clobber(const void *ptr,
                     size_t len);

// Defers a store: `len` bytes at `ptr` become those at `source` when the transaction commits, and not before. Until
// then reading `ptr` gives the old contents. `source` is copied now. Costs no fence of its own.
//
// The codes of durum_tx_add. Nothing is deferred then.
DURUM_MUST_CHECK
int durum_tx_redo_set(void *ptr,
                      const void *source,
                      size_t len);

// Remembers `len` bytes of volatile memory at `ptr`: if the transaction does not commit, they get back what they hold
// now. They must stay valid until it has ended. Recovery ignores them.
//
// DURUM_E_NO_TRANSACTION, DURUM_E_FORKED, DURUM_E_ARGUMENT.
DURUM_MUST_CHECK
int durum_tx_volatile(void *ptr,
                      size_t len);

// Runs `body(arg)` as a transaction, alone with the pool: no other update runs meanwhile, and no durum_pool_read. What
// it announced, deferred, allocated and freed is durable on return.
//
// Updates that threads ask for at the same time are combined: one thread runs them all, as one transaction, with the
// fences of one. So `body` may run on another thread while this one waits; thread-locals are those of the thread that
// runs it. It must not wait for another thread that uses the pool, nor be left by longjmp, an exception or
// pthread_exit (docs/tutorials/c.md shows how it can end its thread). A thread that is cancelled ends behind the
// update, not in it. durum_tx_add and the like work in it, as do DURUM_TX_BEGIN blocks; inside of an update of the
// same pool it is a part of that one.
//
// A result other than 0, durum_tx_abort() in it, or an inner transaction that aborts takes back what `body` has done,
// and only that. If `body` says why by a code of durum (DURUM_E_*), the message goes along.
//
// DURUM_OK; otherwise nothing was kept: what `body` returned; DURUM_E_ABORTED; DURUM_E_UPDATE_IN_READ this thread
// reads this pool; DURUM_E_READS_COPY it reads a copy; DURUM_E_IN_TRANSACTION a transaction that is no update of this
// pool runs on this thread; the codes of durum_tx_begin and durum_tx_commit.
DURUM_MUST_CHECK
int durum_pool_update(struct durum_pool *pool,
                      durum_body body,
                      void *arg);

// Runs `body(arg)` while no update of the pool runs; other reads may. It sees what is durable. Costs no fence, and
// readers write to no common cache line. Within a read or an update of this pool it is a call. It is left as that of
// an update is.
//
// What `body` returned; or, if it was not called, DURUM_E_IN_TRANSACTION a transaction that is no update of this pool
// runs on this thread; DURUM_E_READS_COPY it reads a copy; DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT.
DURUM_MUST_CHECK
int durum_pool_read(struct durum_pool *pool,
                    durum_body body,
                    void *arg);

// Runs `body(copy, arg)` on what is committed, beside an update that changes the pool and without waiting for it, for
// pools that are open with DURUM_POOL_LEFT_RIGHT. `body` sees one copy of the pool, all of it as of one commit; it
// adds `copy->distance` to the address of each object before it reads there, also to those that it reads from pointers
// in objects. Nobody changes the copy meanwhile, nor may `body`. A commit waits until it has returned, so it must not
// wait for other threads' updates, nor be left by longjmp, an exception or pthread_exit.
//
// Within another one on this pool it is a call and sees the same copy; within an update of this pool it is a call and
// sees what that has changed. Inside of it, updates and transactions of pools of DURUM_ENGINE_TWIN are refused, and
// durum_pool_read of them, with DURUM_E_READS_COPY.
//
// What `body` returned; or, if it was not called, DURUM_E_NO_COPIES the pool is not open so; DURUM_E_POISONED,
// DURUM_E_FORKED, DURUM_E_ARGUMENT.
DURUM_MUST_CHECK
int durum_pool_read_copy(struct durum_pool *pool,
                         durum_copy_body body,
                         void *arg);

// Begins an update on this thread, or one more level of it. End it with durum_update_end. Until then all other updates
// and reads of the pool wait, in all threads. The handle must stay open until then. It is never combined with others:
// durum_pool_update costs fewer fences.
//
// The codes of durum_pool_update. None begins then.
DURUM_MUST_CHECK
int durum_update_begin(struct durum_pool *pool);

// Ends what durum_update_begin began on this pool: with `commit` not 0 it is durable on return, with 0 it is taken
// back. Then others go on.
//
// DURUM_E_UNBALANCED the latest that this thread began is no update of this pool, or a transaction inside of it has
// not ended; nothing is ended then. The codes of durum_tx_commit: it has ended, and nothing was kept.
DURUM_MUST_CHECK
int durum_update_end(struct durum_pool *pool,
                     int commit);

// Begins an update on this thread if that takes nobody else: no other thread has used the pool for a while, or the
// pool is used by one thread at a time, and this thread is in no transaction. DURUM_OK: it has begun, and
// durum_update_end_alone ends it. -1: it has not; durum_pool_update waits for the others, or joins the update. Both
// together cost little more than durum_tx_begin and durum_tx_commit.
//
// The handle must stay open until it has ended. Transactions that begin in it end in it. It keeps all others out, as
// durum_update_begin does, and a thread that ends in it takes it back.
//
// The codes of durum_pool_update. None begins then.
DURUM_MUST_CHECK
int durum_update_begin_alone(struct durum_pool *pool);

// Ends what durum_update_begin_alone began: with `commit` not 0 it is durable on return, with 0 it is taken back.
//
// DURUM_E_UNBALANCED none has begun on this pool and thread; nothing is ended then. DURUM_E_ABORTED a transaction in
// it has not ended, or was aborted; the codes of durum_tx_commit: it has ended, and nothing was kept.
DURUM_MUST_CHECK
int durum_update_end_alone(struct durum_pool *pool,
                           int commit);

// Begins to read: until durum_read_end, updates of the pool wait, in all threads. As durum_pool_read, without a
// function.
//
// The codes of durum_pool_read. It does not begin then.
DURUM_MUST_CHECK
int durum_read_begin(struct durum_pool *pool);

// Ends what durum_read_begin began on this pool.
//
// DURUM_E_UNBALANCED the latest that this thread began is no read of this pool; nothing is ended then.
DURUM_MUST_CHECK
int durum_read_end(struct durum_pool *pool);

// Begins a block. For DURUM_TX_BEGIN and DURUM_TX_BEGIN_WITH: `how` is DURUM_DURABLE or DURUM_BUFFERED, and
// DURUM_ALLOC_MAY_FAIL. Whether the body may run is in its state.
void durum_block_enter(struct durum_block *block,
                       struct durum_pool *pool,
                       uint32_t how,
                       const char *file,
                       int line);

// Commits a block whose body has come to its end; does nothing for one that was aborted. For DURUM_TX_ONABORT and
// DURUM_TX_END.
void durum_block_commit(struct durum_block *block);

// Aborts the innermost block and returns it: the caller goes on at its DURUM_TX_ONABORT. Without a block, the
// transaction that durum_tx_begin began can only roll back from now on, and NULL is returned.
//
// `code` is why: DURUM_E_ABORTED if the program wants it so, otherwise the code of the call that has just failed.
struct durum_block *durum_block_abort(int code);

// Ends a block. For DURUM_TX_END. If it did not commit, neither can the block around it, which is aborted, too: the
// caller goes on there. Returns NULL if there is none, or if the block has committed.
struct durum_block *durum_block_end(struct durum_block *block);

// Looks after a block whose frame ends. For the cleanup attribute. A body that was left by return, break, continue,
// goto or an exception has not come to its end: it is aborted, and reported (durum_on_misuse).
void durum_block_leave(struct durum_block *block);

// Who is told, on the thread that does it, when a program leaves a DURUM_TX_BEGIN block in a way that aborts it. NULL,
// the default: standard error. The message is valid during the call. The handler must return.
void durum_on_misuse(void (*handler)(const char *message));

// Takes an empty log with the range (0, 2). If the process dies, the service replays the entries that the durable
// range admits before any pool is handed out again. Close it with durum_log_close, before the pools that its entries
// name.
//
// Returns NULL on failure: DURUM_E_STORAGE_FULL, DURUM_E_ADDRESSES_EXHAUSTED, DURUM_E_POISONED, DURUM_E_ARGUMENT,
// DURUM_E_IO.
DURUM_MUST_CHECK
struct durum_log *durum_log_open(struct durum_store *store);

// Empties the log and gives it back. NULL is allowed. Its entries count no more, durably, on return.
int durum_log_close(struct durum_log *log);

// Appends an entry: when it is applied, `len` bytes at `target` become those that `source` holds now. Pass the target
// itself as source to log its present contents (undo). `sequence` is compared with the log's range: the entry counts
// if lo < sequence < hi. `flags`: DURUM_LOG_REVERSE, DURUM_LOG_VOLATILE. Durable after the next durum_log_flush.
//
// DURUM_E_NOT_IN_POOL a persistent target outside the open pools of the store; DURUM_E_LOG_MISUSE sequence 0, or the
// pool's engine is not DURUM_ENGINE_HYBRID: on others the program does not work in the media; DURUM_E_STORAGE_FULL the
// log had to grow and cannot; DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO. Nothing is appended then.
DURUM_MUST_CHECK
int durum_log_append(struct durum_log *log,
                     void *target,
                     const void *source,
                     size_t len,
                     uint8_t sequence,
                     uint32_t flags);

// Makes the entries appended so far durable: one fence. Before this returns, do not store to what an undo entry
// protects.
//
// DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_log_flush(struct durum_log *log);

// Changes which entries count, by one atomic 8-byte store; durable on return: one fence. (4, 4) admits none.
//
// DURUM_E_LOG_MISUSE lo > hi; DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_log_set_range(struct durum_log *log,
                        uint8_t lo,
                        uint8_t hi);

// Applies the entries that count now, in their order, as recovery would, and volatile ones as well; their targets are
// durable on return: one fence. No other thread may use the targets.
//
// DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_log_apply(struct durum_log *log);

// Empties the log: no entry counts any more, and the range is (0, 2) again. Durable on return: one fence.
//
// DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO.
DURUM_MUST_CHECK
int durum_log_reset(struct durum_log *log);

// Tells what this thread has done so far, in all stores. A leader's counts have the updates that it ran for other
// threads.
//
// DURUM_E_ARGUMENT.
int durum_thread_stats(struct durum_stats *stats);

// Lets each line that is written back, each fence and each sync take so many nanoseconds more, for all threads of the
// process: as on slower media, to see what a program takes there. Zeros end it.
//
// None.
void durum_emulate_delays(uint64_t write_back_ns,
                          uint64_t fence_ns,
                          uint64_t sync_ns);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* ---- the language ---------------------------------------------------------------------------- */

#if !defined(__GNUC__)
#error "durum.h needs gcc or clang: __typeof__ and the cleanup attribute"
#endif
#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ != 8
#error "pools hold 64-bit pointers"
#endif

/* The group of a code: 1 caller, 2 user, 3 data, 4 system, 5 durum. */
#define DURUM_E_GROUP(code) ((code) / 100)

/* Where options start: everything at its default. */
#define DURUM_STORE_OPTIONS_INIT \
    {sizeof(durum_store_options), 0, DURUM_DOMAIN_DETECT, 0, 0, 0, 0, 0, 0, DURUM_MAPPING_DEFAULT}
#define DURUM_MIGRATION_INIT {sizeof(durum_migration), NULL, 0, NULL, 0, NULL, 0, NULL, 0, 0}
#define DURUM_POOL_OPTIONS_INIT {sizeof(durum_pool_options), 0, DURUM_ENGINE_DEFAULT, 0}

/* ---- words -----------------------------------------------------------------------------------
 *
 * durum_tx_add of a word, or of a few, which is what most transactions change, takes no call: what they
 * hold goes to an array of the transaction from here. `&durum_tx_add` and `(durum_tx_add)(ptr, len)` are the
 * function of the library, which does the same.
 */

typedef uint64_t __attribute__((__may_alias__)) durum_any_word_;
/* So many words are announced together at most. */
#define DURUM_WORDS_AT_ONCE_ 8

/* One for each program or shared library. */
__attribute__((__weak__, __visibility__("hidden"), __tls_model__("initial-exec"))) __thread
    struct durum_words_ *const *durum_words_of_thread_ = NULL;

__attribute__((__noinline__, __cold__, __unused__)) static int
durum_tx_add_by_call_(const void *ptr, size_t len) {
    durum_words_of_thread_ = durum_words_2();
    return durum_tx_add(ptr, len);
}

DURUM_MUST_CHECK static inline int durum_tx_add_(const void *ptr, size_t len) {
    struct durum_words_ *const *const of_thread = durum_words_of_thread_;
    if (__builtin_expect(of_thread == NULL, 0)) {
        return durum_tx_add_by_call_(ptr, len);
    }
    if (len == sizeof(durum_any_word_)) {
        struct durum_words_ *const words = *of_thread;
        const uintptr_t within = (uintptr_t)ptr - words->first;
        /* What is no word is far behind the end. */
        if (__builtin_expect((within >> 3 | within << 61) < words->count, 1)) {
            volatile struct durum_word_ *const next = words->next;
            const uintptr_t number = (uintptr_t)ptr / sizeof(durum_any_word_);
            if (words->next[-1].number == number) {
                return DURUM_OK;
            }
            if (__builtin_expect(next != words->end, 1)) {
                /* In this order: if the word cannot be read, the library finds here that it was to be. */
                next->number = number;
                next->inverted = ~*(const volatile durum_any_word_ *)ptr;
                words->next = (struct durum_word_ *)next + 1;
                return DURUM_OK;
            }
        }
    } else if (len % sizeof(durum_any_word_) == 0 && len - 1 < DURUM_WORDS_AT_ONCE_ * 8) {
        struct durum_words_ *const words = *of_thread;
        const uintptr_t within = (uintptr_t)ptr - words->first;
        const uintptr_t place = within >> 3 | within << 61;
        const size_t count = len / sizeof(durum_any_word_);
        volatile struct durum_word_ *const next = words->next;
        if (__builtin_expect(place < words->count && words->count - place >= count &&
                                 (size_t)(words->end - words->next) >= count, 1)) {
            for (size_t i = 0; i < count; i++) {
                next[i].number = (uintptr_t)ptr / sizeof(durum_any_word_) + i;
                next[i].inverted = ~((const volatile durum_any_word_ *)ptr)[i];
            }
            words->next = (struct durum_word_ *)next + count;
            return DURUM_OK;
        }
    }
    return durum_tx_add(ptr, len);
}

#define durum_tx_add(ptr, len) durum_tx_add_((ptr), (len))

/* ---- transactions ----------------------------------------------------------------------------
 *
 *     DURUM_TX_BEGIN(pool) {
 *         ...                      what is done all at once or not at all
 *     } DURUM_TX_ONABORT {
 *         ...                      what is done if it was not; may be left out
 *     } DURUM_TX_END
 *
 * DURUM_TX_BEGIN begins a level of a transaction (durum_tx_begin), DURUM_TX_END commits it
 * (durum_tx_commit). DURUM_TX_BEGIN_WITH(pool, DURUM_BUFFERED) begins one that is durable soon after
 * it has committed (durum_tx_begin_with); with DURUM_DURABLE | DURUM_ALLOC_MAY_FAIL the program itself
 * looks at what durum_malloc gives it.
 *
 * Aborting. durum_tx_abort(), and a DURUM_TX_ macro that fails, jump to DURUM_TX_ONABORT. When
 * it runs, memory, allocations and registered volatile memory are as before the block, and
 * durum_errorcode() tells why: DURUM_E_ABORTED, or the code of what failed. It also runs if the
 * transaction could not begin or could not commit, as after a durum_malloc in it has failed. Without DURUM_TX_ONABORT,
 * durum_errorcode() behind DURUM_TX_END tells: DURUM_OK if the block has committed.
 *
 * Blocks in blocks, also in functions that are called from a block, are one transaction:
 * nothing is durable before the outermost DURUM_TX_END. An inner block that aborts runs its own
 * DURUM_TX_ONABORT, then aborts the block around it; memory is as before once the outermost
 * DURUM_TX_ONABORT runs.
 *
 * Leaving. A block ends at its end. Leaving it by return, break, continue, goto or a C++
 * exception aborts its transaction and is reported as the bug that it is (durum_on_misuse;
 * DURUM_E_BLOCK_LEFT). DURUM_TX_ONABORT may be left in any way; a block around goes on then, and
 * cannot commit. Never leave a block by a longjmp of your own or by pthread_exit.
 *
 * Locals. gcc: a local variable has behind the jump what it had at the jump. clang: a local of the
 * function that has the block, changed inside the block and read in DURUM_TX_ONABORT or after an
 * abort, holds garbage unless it is declared volatile; variables in pools, globals, and locals that
 * do not change in the block are safe. In C++, no object with a destructor may be live inside a
 * block that can abort.
 */

/* Where a block goes on when it fails. gcc's own jump brings locals back as they were at the jump, and
 * knows which those are; with setjmp it warns of every one that changes around a block in a loop.
 * clang has its own jump on few machines. */
#if defined(__clang__)
typedef jmp_buf durum_place;
#define DURUM_MARK_(place) setjmp(place)
#define DURUM_JUMP_(place) longjmp((place), 1)
#else
typedef void *durum_place[5];
#define DURUM_MARK_(place) __builtin_setjmp(place)
#define DURUM_JUMP_(place) __builtin_longjmp((place), 1)
#endif

/* A block: its state for the library, and how to go on behind it. Not for direct use. */
typedef struct durum_frame {
    durum_block block; /* first: the library gives back its address */
    /* By the compiler that made the place: files of one program may be of two. */
    void (*go_on)(struct durum_frame *frame) __attribute__((__noreturn__));
    durum_place place;
} durum_frame;

/* Never inlined: gcc's jump starts in another function than it ends. */
static __attribute__((__noreturn__, __noinline__, __unused__)) void
durum_frame_go_on_(durum_frame *frame) {
    DURUM_JUMP_(frame->place);
}

static inline void durum_go_on_(durum_block *block) {
    if (block != NULL) {
        durum_frame *frame = (durum_frame *)(void *)block;
        frame->go_on(frame);
    }
}

static inline int durum_frame_state_(const durum_frame *frame) {
    /* Read from memory, where the library wrote it: the mark returns twice. */
    return *(const volatile int *)&frame->block.state;
}

static inline void durum_frame_leave_(durum_frame *frame) {
    durum_block_leave(&frame->block);
}

/* Aborts the innermost block: goes on at its DURUM_TX_ONABORT, and does not return. Without a block
 * around it, the transaction that durum_tx_begin began can only roll back from now on; the return
 * value is DURUM_E_ABORTED then, or DURUM_E_NO_TRANSACTION. */
static inline int durum_tx_abort(void) {
    durum_go_on_(durum_block_abort(DURUM_E_ABORTED));
    return durum_errorcode();
}

/* Aborts the innermost block if `code` is not DURUM_OK; it is what durum_errorcode() gives there. */
static inline void durum_tx_check(int code) {
    if (__builtin_expect(code != DURUM_OK, 0)) {
        durum_go_on_(durum_block_abort(code));
    }
}

static inline void *durum_tx_check_pointer_(void *pointer) {
    if (__builtin_expect(pointer == NULL, 0)) {
        durum_go_on_(durum_block_abort(durum_errorcode()));
    }
    return pointer;
}

#define DURUM_TX_BEGIN(pool) DURUM_TX_BEGIN_WITH(pool, DURUM_DURABLE)

#define DURUM_TX_BEGIN_WITH(pool, how)                                                             \
    {                                                                                              \
        durum_frame durum_frame_ __attribute__((__cleanup__(durum_frame_leave_)));                 \
        durum_frame_.go_on = durum_frame_go_on_;                                                   \
        if (DURUM_MARK_(durum_frame_.place) == 0) {                                                \
            durum_block_enter(&durum_frame_.block, (pool), (how), __FILE__, __LINE__);             \
        }                                                                                          \
        if (durum_frame_state_(&durum_frame_) == DURUM_BLOCK_RUNNING) {

#define DURUM_TX_ONABORT                                                                           \
            durum_block_commit(&durum_frame_.block);                                               \
        }                                                                                          \
        if (durum_frame_state_(&durum_frame_) == DURUM_BLOCK_ABORTED) {

#define DURUM_TX_END                                                                               \
            durum_block_commit(&durum_frame_.block);                                               \
        }                                                                                          \
        durum_go_on_(durum_block_end(&durum_frame_.block));                                        \
    }

/* The functions of the same names on *ptr as a whole; a failure aborts the block. */
#define DURUM_TX_ADD(ptr) durum_tx_check(durum_tx_add((ptr), sizeof(*(ptr))))
#define DURUM_TX_CLOBBER(ptr) durum_tx_check(durum_tx_clobber((ptr), sizeof(*(ptr))))
#define DURUM_TX_VOLATILE(ptr) durum_tx_check(durum_tx_volatile((ptr), sizeof(*(ptr))))

/* *ptr becomes `value` when the transaction commits, and not before (durum_tx_redo_set); a failure
 * aborts the block. */
#ifdef __cplusplus
#define DURUM_TX_REDO_SET(ptr, value) durum_redo_set_((ptr), (value))
#else
#define DURUM_TX_REDO_SET(ptr, value)                                                              \
    __extension__({                                                                                \
        __typeof__(ptr) durum_target_ = (ptr);                                                     \
        __typeof__(*durum_target_) durum_value_ = (value);                                         \
        durum_tx_check(durum_tx_redo_set(durum_target_, &durum_value_, sizeof(durum_value_)));     \
    })
#endif

/* durum_free; a failure aborts the block. */
#define DURUM_TX_FREE(ptr) durum_tx_check(durum_free(ptr))

/* ---- types -----------------------------------------------------------------------------------
 *
 *     typedef struct node {
 *         uint64_t value;
 *         struct node *next;
 *     } node;
 *     DURUM_TYPE(node, DURUM_FIELD(value), DURUM_PTR(next))
 *
 * tells durum where an object's pointers are, and how to show the rest. `node` is a typedef
 * (or, in C++, any name of the type) and also the language-neutral name: a program that
 * declares the same names and layouts, in Rust or C++, has the same type (durum_type_id).
 * DURUM_TYPE stands at file scope; types that point to each other are announced by
 * DURUM_TYPE_DECLARE first.
 *
 * Every pointer must be listed: a pointer that is not cannot follow its object to another
 * address. Other fields may be left out, and are padding then, also for the id.
 *
 *   DURUM_FIELD(f)              a number: integer, floating point, _Bool, enum; the compiler tells
 *                               width and signedness
 *   DURUM_ARRAY(f)              an array of numbers, with one dimension
 *   DURUM_TAIL(f)               a flexible array member of numbers
 *   DURUM_PTR(f)                a pointer: to the type itself, to a number, otherwise to anything
 *   DURUM_PTR_TO(f, type)       a pointer to a declared type; anything else does not compile
 *   DURUM_PTR_ARRAY_TO(f, type) an array of such
 *   DURUM_PTR_TAIL_TO(f, type)  a flexible array member of such
 *   DURUM_STRUCT(f, type)       a struct in the struct, of a declared type
 *   DURUM_STRUCT_ARRAY(f, type) an array of such
 *   DURUM_BYTES(f)              bytes without pointers (a union, an array with two dimensions, ...)
 *   DURUM_VOLATILE(f)           locks and the like, which mean nothing after the program has ended
 *   DURUM_RESERVED(f)           bytes that are zero (DURUM_NEW makes them so, durum_malloc does not)
 *                               until a later version of the type has fields there
 *
 * A type may change while the data stays (docs/how-to/change-types.md). What the new one says then:
 *
 *   DURUM_IN_RESERVED(f)        the field f, which is listed, too, may lie where bytes were reserved
 *   DURUM_WAS(f, "name")        the field f, which is listed, too, had this name before
 *   DURUM_TYPE_WAS("name")      the type had this language-neutral name before
 */

/* From here on gcc names the line of the program where something is wrong, and not those here. */
#pragma GCC system_header

#define DURUM_TYPE(name, ...) DURUM_TYPE_AS(name, #name, __VA_ARGS__)

/* With a language-neutral name of its own. */
#define DURUM_TYPE_AS(name, neutral_name, ...)                                                     \
    DURUM_TYPE_DECLARE(name)                                                                       \
    static durum_type *durum_type_of_##name(void) {                                                \
        typedef name durum_self_;                                                                  \
        static const durum_field fields[] = {__VA_ARGS__};                                         \
        static durum_type type = {(neutral_name), sizeof(durum_self_), DURUM_ALIGN_(durum_self_),  \
                                  fields, sizeof(fields) / sizeof(fields[0]), NULL};               \
        return &type;                                                                              \
    }

/* A type without pointers, none of whose fields is described. */
#define DURUM_TYPE_PLAIN(name)                                                                     \
    DURUM_TYPE_DECLARE(name)                                                                       \
    static durum_type *durum_type_of_##name(void) {                                                \
        typedef name durum_self_;                                                                  \
        static durum_type type = {#name, sizeof(durum_self_), DURUM_ALIGN_(durum_self_), NULL, 0,  \
                                  NULL};                                                           \
        return &type;                                                                              \
    }

#define DURUM_TYPE_DECLARE(name)                                                                   \
    static durum_type *durum_type_of_##name(void) __attribute__((__unused__));

/* The declaration, for durum_malloc, durum_root and durum_type_id. */
#define DURUM_TYPE_OF(name) durum_type_of_##name()

/* A zeroed object, or the root, as a `type *`; NULL on failure. */
#define DURUM_NEW(pool, type)                                                                      \
    ((type *)durum_malloc_zeroed((pool), DURUM_TYPE_OF(type), sizeof(type)))
#define DURUM_ROOT(pool, type) ((type *)durum_root((pool), DURUM_TYPE_OF(type), sizeof(type)))

/* DURUM_NEW, the same with `bytes` of room (for a flexible array member, or several objects in a row),
 * and durum_strdup; a failure aborts the block. */
#define DURUM_TX_NEW(pool, type) DURUM_TX_ALLOC(pool, type, sizeof(type))
#define DURUM_TX_ALLOC(pool, type, bytes)                                                          \
    ((type *)durum_tx_check_pointer_(durum_malloc_zeroed((pool), DURUM_TYPE_OF(type), (bytes))))
#define DURUM_TX_STRDUP(pool, string)                                                              \
    ((char *)durum_tx_check_pointer_(durum_strdup((pool), (string))))

#define DURUM_FIELD(f) DURUM_ONE_(f, DURUM_FIELD_KIND_(DURUM_WHOLE_(f)), NULL, NULL)
#define DURUM_ARRAY(f)                                                                             \
    DURUM_MANY_(f, DURUM_COUNT_(f), DURUM_ARRAY_KIND_(DURUM_WHOLE_(f)), NULL, NULL)
#define DURUM_TAIL(f)                                                                              \
    DURUM_MANY_(f, DURUM_COUNT_TAIL, DURUM_TAIL_KIND_(DURUM_WHOLE_(f)), NULL, NULL)
#define DURUM_PTR(f)                                                                               \
    DURUM_ONE_(f, DURUM_PTR_KIND_(DURUM_WHOLE_(f)), DURUM_TARGET_NAME_(DURUM_WHOLE_(f)), NULL)
#define DURUM_PTR_TO(f, type)                                                                      \
    DURUM_ONE_(f, DURUM_PTR_TO_KIND_(DURUM_WHOLE_(f), type), NULL, durum_type_of_##type)
#define DURUM_PTR_ARRAY_TO(f, type)                                                                \
    DURUM_MANY_(f, DURUM_COUNT_(f), DURUM_PTR_ARRAY_TO_KIND_(DURUM_WHOLE_(f), type), NULL,         \
                durum_type_of_##type)
#define DURUM_PTR_TAIL_TO(f, type)                                                                 \
    DURUM_MANY_(f, DURUM_COUNT_TAIL, DURUM_PTR_TAIL_TO_KIND_(DURUM_WHOLE_(f), type), NULL,         \
                durum_type_of_##type)
#define DURUM_STRUCT(f, type)                                                                      \
    DURUM_ONE_(f, DURUM_STRUCT_KIND_(DURUM_WHOLE_(f), type), NULL, durum_type_of_##type)
#define DURUM_STRUCT_ARRAY(f, type)                                                                \
    DURUM_MANY_(f, DURUM_COUNT_(f), DURUM_STRUCT_ARRAY_KIND_(DURUM_WHOLE_(f), type), NULL,         \
                durum_type_of_##type)
#define DURUM_BYTES(f) DURUM_ONE_(f, DURUM_KIND_BYTES, NULL, NULL)
#define DURUM_VOLATILE(f) DURUM_ONE_(f, DURUM_KIND_VOLATILE, NULL, NULL)
#define DURUM_RESERVED(f) DURUM_ONE_(f, DURUM_KIND_RESERVED, NULL, NULL)

#define DURUM_IN_RESERVED(f) DURUM_SAID_(#f, offsetof(durum_self_, f), DURUM_KIND_IN_RESERVED, NULL)
#define DURUM_WAS(f, former) DURUM_SAID_(#f, offsetof(durum_self_, f), DURUM_KIND_WAS, former)
#define DURUM_TYPE_WAS(former) DURUM_SAID_("", 0, DURUM_KIND_TYPE_WAS, former)
#define DURUM_SAID_(name, offset, kind, former)                                                    \
    {(name), (offset), 0, 0, 0, (kind), (former), NULL}

/* A field, and one that is an array. */
#define DURUM_ONE_(f, kind, target_name, target)                                                   \
    DURUM_DECLARE_(f, DURUM_WHOLE_(f), 0, kind, target_name, target)
#define DURUM_MANY_(f, count, kind, target_name, target)                                           \
    DURUM_DECLARE_(f, DURUM_ELEMENT_(DURUM_WHOLE_(f)), count, kind, target_name, target)
#define DURUM_DECLARE_(f, element, count, kind, target_name, target)                               \
    {#f,                                                                                           \
     offsetof(durum_self_, f),                                                                     \
     sizeof(element),                                                                              \
     (count),                                                                                      \
     DURUM_ALIGN_(element),                                                                        \
     (kind),                                                                                       \
     (target_name),                                                                                \
     (target)}

/* What the compiler says where the macro is not that of the field. C99 has no messages: there the
 * words are the name of a member. */
#if defined(__cplusplus) || __STDC_VERSION__ >= 201112L
#define DURUM_SAYS_FIELD_                                                                          \
    "durum: DURUM_FIELD is for a number; a pointer is DURUM_PTR or DURUM_PTR_TO, a struct "        \
    "DURUM_STRUCT, an array DURUM_ARRAY, anything else without pointers DURUM_BYTES"
#define DURUM_SAYS_ARRAY_                                                                          \
    "durum: DURUM_ARRAY is for an array of numbers; of pointers it is DURUM_PTR_ARRAY_TO, of "     \
    "structs DURUM_STRUCT_ARRAY, of anything else without pointers DURUM_BYTES"
#define DURUM_SAYS_TAIL_                                                                           \
    "durum: DURUM_TAIL is for a flexible array member of numbers; of pointers it is "              \
    "DURUM_PTR_TAIL_TO"
#define DURUM_SAYS_PTR_                                                                            \
    "durum: DURUM_PTR is for a pointer; a number is DURUM_FIELD, an array DURUM_ARRAY (of "         \
    "pointers DURUM_PTR_ARRAY_TO), a struct DURUM_STRUCT"
#define DURUM_SAYS_PTR_TO_ "durum: DURUM_PTR_TO is for a pointer to the type that it names"
#define DURUM_SAYS_PTR_ARRAY_TO_                                                                   \
    "durum: DURUM_PTR_ARRAY_TO is for an array of pointers to the type that it names"
#define DURUM_SAYS_PTR_TAIL_TO_                                                                    \
    "durum: DURUM_PTR_TAIL_TO is for a flexible array member of pointers to the type that it names"
#define DURUM_SAYS_STRUCT_                                                                         \
    "durum: DURUM_STRUCT is for a struct of the type that it names; a pointer to it is "           \
    "DURUM_PTR_TO, an array of it DURUM_STRUCT_ARRAY"
#define DURUM_SAYS_STRUCT_ARRAY_                                                                   \
    "durum: DURUM_STRUCT_ARRAY is for an array of structs of the type that it names"
#else
#define DURUM_SAYS_FIELD_                                                                          \
    durum__DURUM_FIELD_is_for_a_number__a_pointer_is_DURUM_PTR_or_DURUM_PTR_TO
#define DURUM_SAYS_ARRAY_                                                                          \
    durum__DURUM_ARRAY_is_for_an_array_of_numbers__of_pointers_it_is_DURUM_PTR_ARRAY_TO
#define DURUM_SAYS_TAIL_                                                                           \
    durum__DURUM_TAIL_is_for_a_flexible_array_member_of_numbers
#define DURUM_SAYS_PTR_                                                                            \
    durum__DURUM_PTR_is_for_a_pointer__a_number_is_DURUM_FIELD__an_array_DURUM_ARRAY
#define DURUM_SAYS_PTR_TO_                                                                         \
    durum__DURUM_PTR_TO_is_for_a_pointer_to_the_type_that_it_names
#define DURUM_SAYS_PTR_ARRAY_TO_                                                                   \
    durum__DURUM_PTR_ARRAY_TO_is_for_an_array_of_pointers_to_the_type_that_it_names
#define DURUM_SAYS_PTR_TAIL_TO_                                                                    \
    durum__DURUM_PTR_TAIL_TO_is_for_a_flexible_array_member_of_pointers_to_the_type_that_it_names
#define DURUM_SAYS_STRUCT_                                                                         \
    durum__DURUM_STRUCT_is_for_a_struct_of_the_type_that_it_names
#define DURUM_SAYS_STRUCT_ARRAY_                                                                   \
    durum__DURUM_STRUCT_ARRAY_is_for_an_array_of_structs_of_the_type_that_it_names
#endif

#define DURUM_COUNT_(f) (sizeof(DURUM_WHOLE_(f)) / sizeof(DURUM_ELEMENT_(DURUM_WHOLE_(f))))
#define DURUM_ALIGN_(type) __extension__ __alignof__(type)

#ifndef __cplusplus

/* The type of a field; that of the elements of an array, or what a pointer leads to, otherwise char. */
#define DURUM_WHOLE_(f) __typeof__(((durum_self_ *)0)->f)
#define DURUM_ELEMENT_(whole)                                                                      \
    __typeof__(*__builtin_choose_expr(DURUM_LEADS_(whole), *(whole *)0, (char *)0))

/* `kind`, unless the condition does not hold, which does not compile. */
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DURUM_KIND_IF_(condition, kind, says)                                                      \
    ((kind) + 0 * sizeof(struct {                                                                  \
        _Static_assert(condition, says);                                                           \
        int durum_;                                                                                \
    }))
#else
#define DURUM_KIND_IF_(condition, kind, says)                                                      \
    ((kind) + 0 * sizeof(struct {                                                                  \
        int says : (condition) ? 1 : -1;                                                           \
    }))
#endif

/* A pointer is class 5 of types, also one that an array has turned into. */
#define DURUM_LEADS_(whole) (__builtin_classify_type(*(whole *)0) == 5)
#define DURUM_IS_ARRAY_(whole)                                                                     \
    (DURUM_LEADS_(whole) && !__builtin_types_compatible_p(whole, DURUM_ELEMENT_(whole) *))
#define DURUM_IS_POINTER_(whole) (DURUM_LEADS_(whole) && !DURUM_IS_ARRAY_(whole))
#define DURUM_IS_POINTER_TO_(whole, type)                                                          \
    (DURUM_IS_POINTER_(whole) &&                                                                   \
     __extension__ _Generic(*(whole *)0, type *: 1, const type *: 1, default: 0))
#define DURUM_IS_(whole, type) __builtin_types_compatible_p(whole, type)

#define DURUM_CHAR_ ((char)-1 < 0 ? DURUM_KIND_I8 : DURUM_KIND_U8)

/* That of a number, else DURUM_KIND_BYTES. */
#define DURUM_NUMBER_(whole)                                                                       \
    __extension__ _Generic(*(whole *)0, \
        _Bool: DURUM_KIND_BOOL, \
        char: DURUM_CHAR_, \
        signed char: DURUM_KIND_I8, \
        unsigned char: DURUM_KIND_U8, \
        short: DURUM_KIND_I16, \
        unsigned short: DURUM_KIND_U16, \
        int: DURUM_KIND_I32, \
        unsigned int: DURUM_KIND_U32, \
        long: DURUM_KIND_I64, \
        unsigned long: DURUM_KIND_U64, \
        long long: DURUM_KIND_I64, \
        unsigned long long: DURUM_KIND_U64, \
        float: DURUM_KIND_F32, \
        double: DURUM_KIND_F64, \
        default: DURUM_KIND_BYTES)
#define DURUM_IS_NUMBER_(whole) (DURUM_NUMBER_(whole) != DURUM_KIND_BYTES)

#define DURUM_FIELD_KIND_(whole)                                                                   \
    DURUM_KIND_IF_(DURUM_IS_NUMBER_(whole), DURUM_NUMBER_(whole), DURUM_SAYS_FIELD_)
#define DURUM_NUMBERS_KIND_(whole, says)                                                           \
    DURUM_KIND_IF_(DURUM_IS_ARRAY_(whole) && DURUM_IS_NUMBER_(DURUM_ELEMENT_(whole)),              \
                   DURUM_NUMBER_(DURUM_ELEMENT_(whole)), says)
#define DURUM_ARRAY_KIND_(whole) DURUM_NUMBERS_KIND_(whole, DURUM_SAYS_ARRAY_)
#define DURUM_TAIL_KIND_(whole) DURUM_NUMBERS_KIND_(whole, DURUM_SAYS_TAIL_)
#define DURUM_PTR_KIND_(whole)                                                                     \
    DURUM_KIND_IF_(DURUM_IS_POINTER_(whole), DURUM_KIND_POINTER, DURUM_SAYS_PTR_)
#define DURUM_PTR_TO_KIND_(whole, type)                                                            \
    DURUM_KIND_IF_(DURUM_IS_POINTER_TO_(whole, type), DURUM_KIND_POINTER, DURUM_SAYS_PTR_TO_)
#define DURUM_PTRS_TO_KIND_(whole, type, says)                                                     \
    DURUM_KIND_IF_(DURUM_IS_ARRAY_(whole) && DURUM_IS_POINTER_TO_(DURUM_ELEMENT_(whole), type),    \
                   DURUM_KIND_POINTER, says)
#define DURUM_PTR_ARRAY_TO_KIND_(whole, type)                                                      \
    DURUM_PTRS_TO_KIND_(whole, type, DURUM_SAYS_PTR_ARRAY_TO_)
#define DURUM_PTR_TAIL_TO_KIND_(whole, type)                                                       \
    DURUM_PTRS_TO_KIND_(whole, type, DURUM_SAYS_PTR_TAIL_TO_)
#define DURUM_STRUCT_KIND_(whole, type)                                                            \
    DURUM_KIND_IF_(DURUM_IS_(whole, type), DURUM_KIND_STRUCT, DURUM_SAYS_STRUCT_)
#define DURUM_STRUCT_ARRAY_KIND_(whole, type)                                                      \
    DURUM_KIND_IF_(DURUM_IS_ARRAY_(whole) && DURUM_IS_(DURUM_ELEMENT_(whole), type),               \
                   DURUM_KIND_STRUCT, DURUM_SAYS_STRUCT_ARRAY_)

#define DURUM_NAMES_(type, name) type *: name, const type *: name
#define DURUM_TARGET_NAME_(whole)                                                                  \
    __extension__ _Generic(*(whole *)0, \
        DURUM_NAMES_(durum_self_, ""), \
        DURUM_NAMES_(_Bool, "bool"), \
        DURUM_NAMES_(char, (char)-1 < 0 ? "i8" : "u8"), \
        DURUM_NAMES_(signed char, "i8"), \
        DURUM_NAMES_(unsigned char, "u8"), \
        DURUM_NAMES_(short, "i16"), \
        DURUM_NAMES_(unsigned short, "u16"), \
        DURUM_NAMES_(int, "i32"), \
        DURUM_NAMES_(unsigned int, "u32"), \
        DURUM_NAMES_(long, "i64"), \
        DURUM_NAMES_(unsigned long, "u64"), \
        DURUM_NAMES_(long long, "i64"), \
        DURUM_NAMES_(unsigned long long, "u64"), \
        DURUM_NAMES_(float, "f32"), \
        DURUM_NAMES_(double, "f64"), \
        default: NULL)

#else /* C++ */

template <class T, bool = std::is_enum<T>::value> struct durum_integer_ {
    typedef T type;
};
template <class T> struct durum_integer_<T, true> {
    typedef typename std::underlying_type<T>::type type;
};

/* That of a number. */
template <class T> constexpr uint32_t durum_number_of_() {
    typedef typename durum_integer_<T>::type number;
    return std::is_same<number, bool>::value ? DURUM_KIND_BOOL
           : std::is_floating_point<number>::value
               ? (sizeof(number) == 4 ? DURUM_KIND_F32 : DURUM_KIND_F64)
               : (std::is_signed<number>::value ? DURUM_KIND_I8 : DURUM_KIND_U8) +
                     (sizeof(number) == 1   ? 0
                      : sizeof(number) == 2 ? 1
                      : sizeof(number) == 4 ? 2
                                            : 3);
}

template <class T> struct durum_is_number_ {
    static constexpr bool value =
        (std::is_arithmetic<T>::value || std::is_enum<T>::value) && sizeof(T) <= 8;
};
template <class T, class Target> struct durum_is_pointer_to_ {
    typedef typename std::remove_cv<typename std::remove_pointer<T>::type>::type target;
    static constexpr bool value = std::is_pointer<T>::value && std::is_same<target, Target>::value;
};

/* The kind of a field, where the macro is that of the field. */
template <class T> constexpr uint32_t durum_field_kind_() {
    static_assert(durum_is_number_<T>::value, DURUM_SAYS_FIELD_);
    return durum_number_of_<T>();
}
template <class T> constexpr uint32_t durum_array_kind_() {
    typedef typename std::remove_extent<T>::type element;
    static_assert(std::is_array<T>::value && durum_is_number_<element>::value, DURUM_SAYS_ARRAY_);
    return durum_number_of_<element>();
}
template <class T> constexpr uint32_t durum_tail_kind_() {
    typedef typename std::remove_extent<T>::type element;
    static_assert(std::is_array<T>::value && durum_is_number_<element>::value, DURUM_SAYS_TAIL_);
    return durum_number_of_<element>();
}
template <class T> constexpr uint32_t durum_ptr_kind_() {
    static_assert(std::is_pointer<T>::value, DURUM_SAYS_PTR_);
    return DURUM_KIND_POINTER;
}
template <class T, class Target> constexpr uint32_t durum_ptr_to_kind_() {
    static_assert(durum_is_pointer_to_<T, Target>::value, DURUM_SAYS_PTR_TO_);
    return DURUM_KIND_POINTER;
}
template <class T, class Target> constexpr uint32_t durum_ptr_array_to_kind_() {
    typedef typename std::remove_extent<T>::type element;
    static_assert(std::is_array<T>::value && durum_is_pointer_to_<element, Target>::value,
                  DURUM_SAYS_PTR_ARRAY_TO_);
    return DURUM_KIND_POINTER;
}
template <class T, class Target> constexpr uint32_t durum_ptr_tail_to_kind_() {
    typedef typename std::remove_extent<T>::type element;
    static_assert(std::is_array<T>::value && durum_is_pointer_to_<element, Target>::value,
                  DURUM_SAYS_PTR_TAIL_TO_);
    return DURUM_KIND_POINTER;
}
template <class T, class Inner> constexpr uint32_t durum_struct_kind_() {
    static_assert(std::is_same<T, Inner>::value, DURUM_SAYS_STRUCT_);
    return DURUM_KIND_STRUCT;
}
template <class T, class Inner> constexpr uint32_t durum_struct_array_kind_() {
    static_assert(std::is_array<T>::value &&
                      std::is_same<typename std::remove_extent<T>::type, Inner>::value,
                  DURUM_SAYS_STRUCT_ARRAY_);
    return DURUM_KIND_STRUCT;
}

/* In C++17 these would be `if constexpr`; C++11 compiles them, too. */
template <class T, bool = std::is_arithmetic<T>::value> struct durum_number_name_ {
    static constexpr const char *name() {
        return NULL;
    }
};
template <class T> struct durum_number_name_<T, true> {
    static constexpr const char *of(uint32_t kind) {
        return kind == DURUM_KIND_U8     ? "u8"
               : kind == DURUM_KIND_U16  ? "u16"
               : kind == DURUM_KIND_U32  ? "u32"
               : kind == DURUM_KIND_U64  ? "u64"
               : kind == DURUM_KIND_I8   ? "i8"
               : kind == DURUM_KIND_I16  ? "i16"
               : kind == DURUM_KIND_I32  ? "i32"
               : kind == DURUM_KIND_I64  ? "i64"
               : kind == DURUM_KIND_F32  ? "f32"
               : kind == DURUM_KIND_F64  ? "f64"
                                         : "bool";
    }
    static constexpr const char *name() {
        return of(durum_number_of_<T>());
    }
};

template <class Self, class T> constexpr const char *durum_target_name_() {
    typedef typename std::remove_cv<typename std::remove_pointer<T>::type>::type target;
    return std::is_same<target, Self>::value ? "" : durum_number_name_<target>::name();
}

/* `value` does not take part in finding T, so that NULL and numbers of other types convert. */
template <class T>
inline void durum_redo_set_(T *target, typename std::remove_cv<T>::type value) {
    durum_tx_check(durum_tx_redo_set(target, &value, sizeof(value)));
}

#define DURUM_WHOLE_(f)                                                                            \
    std::remove_cv<std::remove_reference<decltype(((durum_self_ *)0)->f)>::type>::type
#define DURUM_ELEMENT_(whole) std::remove_extent<whole>::type
#define DURUM_FIELD_KIND_(whole) durum_field_kind_<whole>()
#define DURUM_ARRAY_KIND_(whole) durum_array_kind_<whole>()
#define DURUM_TAIL_KIND_(whole) durum_tail_kind_<whole>()
#define DURUM_PTR_KIND_(whole) durum_ptr_kind_<whole>()
#define DURUM_PTR_TO_KIND_(whole, type) (durum_ptr_to_kind_<whole, type>())
#define DURUM_PTR_ARRAY_TO_KIND_(whole, type) (durum_ptr_array_to_kind_<whole, type>())
#define DURUM_PTR_TAIL_TO_KIND_(whole, type) (durum_ptr_tail_to_kind_<whole, type>())
#define DURUM_STRUCT_KIND_(whole, type) (durum_struct_kind_<whole, type>())
#define DURUM_STRUCT_ARRAY_KIND_(whole, type) (durum_struct_array_kind_<whole, type>())
#define DURUM_TARGET_NAME_(whole) (durum_target_name_<durum_self_, whole>())

#endif /* C++ */

#endif /* DURUM_H */
