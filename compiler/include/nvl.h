/* NVL-C: persistent memory in the C language. docs/tutorials/nvl-c.md is the manual.
 *
 *  1. A type that is qualified with `nvl` is stored in non-volatile memory (NVM). Pointers to it
 *     are ordinary 8-byte pointers. Objects are made by nvl_alloc_nv only.
 *  2. A heap is a directory of its own: a durum store with one pool, `heap`. A handle of it lasts
 *     until nvl_close and may be used by all threads. It is no address: a handle that is used
 *     behind nvl_close, or was never given, is told, and ends the program.
 *  3. nvl_open and nvl_create give NULL where the heap cannot be opened or made; nvl_error says
 *     why. What breaks a rule of NVL-C at run time ends the program, with file, line and heaps.
 *  4. Names that begin with __nvl_ belong to the compiler and its runtime
 *     (docs/reference/nvl-ir.md).
 *
 * Nothing is included but stddef.h: programs may use any other name of the C library for theirs. */
#ifndef NVL_H
#define NVL_H

#ifdef __cplusplus
#error                                                                                             \
    "NVL-C extends C, not C++: compile this file as C, and call it from C++ through functions with plain pointers"
#endif
#if __SIZEOF_POINTER__ != 8
#error "NVL-C needs a 64-bit machine: pointers in a heap have 8 bytes"
#endif

#include <stddef.h>

/* The front end waits for this declaration: the rules of NVL-C hold from here on. */
typedef struct __nvl_heap nvl_heap_t;

#ifdef __NVLC__
/* Type qualifiers. The attribute address_space carries the meaning into the intermediate code; the
 * second one makes the front end look at parameters and members. */
#define nvl __attribute__((address_space(1), __nvl_q__))
/* For members that are pointers: a weak pointer, which does not keep its target. */
#define nvl_wp __attribute__((address_space(2), __nvl_wp_q__))
#else
/* For editors and other tools that only read programs, such as clangd: plain C, which has the
 * program's types without the qualifiers. Who makes code of it is refused at the end. (With nothing
 * behind the names, declarations would seem to be indented.) */
#define nvl __attribute__(())
#define nvl_wp __attribute__(())
/* What only a pragma names is no mistake. */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-parameter"
#endif

/* Opens a heap. NULL, if it cannot be opened; nvl_error says why, and so does errno
 * (docs/tutorials/nvl-c.md has the table). */
nvl_heap_t *nvl_open(const char *path);

/* Why the latest nvl_open or nvl_create of this thread failed; "" if it did not. Valid until the
 * next of these calls in this thread. */
const char *nvl_error(void);

/* Behind the macros of these names, so that one with too few arguments is an error at once. Clang
 * would look for a name that resembles it, find a function, and fail when it initializes a pointer
 * with it. */
extern const struct __nvl_macro nvl_create, nvl_alloc_nv, nvl_get_root, nvl_set_root;

/* nvl_create(path), nvl_create(path, size), nvl_create(path, size, mode): makes a heap that does
 * not exist yet and opens it. NULL on failure, as for nvl_open. `size`: how many bytes to make room
 * for now; it grows by itself. `mode`: permissions as for open(2), 0600 if it is not given or 0. */
#define nvl_create(...) __nvl_create_with(__VA_ARGS__, 0, 0, 0)
#define __nvl_create_with(path, size, mode, ...) __nvl_create((path), (size), (mode))

/* Frees what nothing points to any more and closes the heap. NULL is allowed. Not while any thread
 * is in a transaction on it. */
void nvl_close(nvl_heap_t *heap);

/* Frees now what neither the heap nor any thread's memory points to; returns how many allocations.
 * Happens by itself when there are many, at nvl_close, and at nvl_open after a crash. Not in a
 * transaction. */
size_t nvl_collect(nvl_heap_t *heap);

/* Whether clauses of transactions lock their segments against other threads: 0 (the default) or 1.
 * While no transaction is open. */
void nvl_set_concurrent(nvl_heap_t *heap, int on);

/* What it has taken until now to make things durable, in this process and all its heaps. The counts
 * only grow: take the difference of two. */
struct nvl_counters {
    /* Fences on mapped memory. */
    unsigned long long fences;
    /* Cache lines written back. */
    unsigned long long write_backs;
    /* Cache lines stored past the cache. */
    unsigned long long streamed_lines;
    /* Syncs of files and directories. */
    unsigned long long syncs;
    /* Bytes of logs. */
    unsigned long long bytes_logged;
    /* Bytes that were written to become durable. */
    unsigned long long bytes_written;
    /* Transactions that changed something, by their end: implicit ones, too. */
    unsigned long long commits;
    unsigned long long aborts;
};
void nvl_counters(struct nvl_counters *counters);

/* `n` objects of the type in a row, zeroed: `nvl type *`. The program ends if there is no room. */
#define nvl_alloc_nv(heap, n, type)                                                                \
    ((nvl __typeof__(type) *)__nvl_alloc((heap), (size_t)(n), sizeof(type),                        \
                                         __nvl_type_of((__typeof__(type) *)0)))

/* The root as `nvl type *`, or null if none was set. The program ends if it is of another type. */
#define nvl_get_root(heap, type)                                                                   \
    ((nvl __typeof__(type) *)__nvl_get_root((heap), __nvl_type_of((__typeof__(type) *)0)))

/* Makes `ptr` the root; NULL leaves none. */
#define nvl_set_root(heap, ptr)                                                                    \
    __nvl_set_root((heap), (ptr), __nvl_type_of_nvl((__typeof__(*(ptr)) *)0))

/* ---- types that change (docs/how-to/change-types.md) ----------------------------------------- */

/* Whether nvl_get_root would give the root as this type, or null as none was set: 1. 0: it would
 * end the program, as the heap was made for other types than the program has. */
#define nvl_root_is(heap, type) __nvl_root_is((heap), __nvl_type_of((__typeof__(type) *)0))

/* What nvl_migrate takes for a type. */
#define nvl_type(type) __nvl_type(__nvl_type_of((__typeof__(type) *)0))

/* What becomes of a type; or one that the program has now and to which its root does not lead, of
 * which only `now` is said. */
struct nvl_migrated_type {
    /* Its name in the heap: `task` of a struct task, `i32` of an int. NULL: that of `was`. */
    const char *name;
    /* nvl_type of a struct that is declared as the earlier version declared it, under any name.
     * NULL where no function needs it. */
    const char *was;
    /* nvl_type of what it becomes. */
    const char *now;
    /* Makes the new struct, all of which is zero before, of the old one. Pointers are copied as
     * they are, once each, and follow later. Is asked twice for each struct, and makes the same
     * both times. It returns: a longjmp out of it is an error. A result other than 0 refuses the
     * migration. NULL: fields are those of the same names, and what is said of them. */
    int (*make)(const void *was, void *now, void *argument);
    /* What `make` gets besides. */
    void *argument;
};

/* What becomes of a field. One of the last three is said. */
struct nvl_migrated_field {
    /* Its struct's name in the heap. */
    const char *type;
    /* Its name now; of one that is forgotten, its name before. */
    const char *name;
    /* The name that it had. */
    const char *was;
    /* It is new, and has this value in each struct: "3", "-0.5", "[1,2,3]" (docs/format/dump.md).
     */
    const char *value;
    /* 1: it goes though it is a pointer, or has some. */
    int forget;
};

/* How a heap is made anew. */
struct nvl_migration {
    /* nvl_type of its root. */
    const char *root;
    const struct nvl_migrated_type *types;
    size_t type_count;
    const struct nvl_migrated_field *fields;
    size_t field_count;
};

/* What was done, or would be. */
struct nvl_migration_report {
    /* Allocations, with what the heap keeps for itself. */
    unsigned long long objects;
    /* Bytes of the files before, and of the new ones. */
    unsigned long long old_bytes;
    unsigned long long bytes;
    /* New files. */
    unsigned long long puddles;
    /* Bytes that are needed besides while it goes on. */
    unsigned long long scratch_bytes;
};

/* Makes the heap at `path` anew, which nobody has open, under the types that the program has now:
 * all, or nothing. 0, or -1, where nvl_error says everything that stands in the way, with errno as
 * for nvl_open. `report` may be NULL. It needs room for the heap once more. */
int nvl_migrate(const char *path, const struct nvl_migration *how,
                struct nvl_migration_report *report);

/* Tells what nvl_migrate would do, and writes nothing. */
int nvl_plan_migration(const char *path, const struct nvl_migration *how,
                       struct nvl_migration_report *report);

/* ---- for the compiler ------------------------------------------------------------------------ */

nvl_heap_t *__nvl_create(const char *path, size_t size, unsigned mode);
nvl void *__nvl_alloc(nvl_heap_t *heap, size_t count, size_t size, const char *descriptor);
nvl void *__nvl_get_root(nvl_heap_t *heap, const char *descriptor);
int __nvl_root_is(nvl_heap_t *heap, const char *descriptor);
const char *__nvl_type(const char *descriptor);
void __nvl_set_root(nvl_heap_t *heap, nvl const volatile void *root, const char *descriptor);

/* Never called: the front end puts the descriptor of the type in the place of the call. */
const char *__nvl_type_of(const volatile void *null_of_type);
const char *__nvl_type_of_nvl(nvl const volatile void *null_of_type);

/* Never called: takes the values that clauses name, of any type, and the front end puts them where
 * they belong. */
int __nvl_values(int count, ...);

/* What `#pragma nvl atomic` becomes. */
struct __nvl_tx {
    void *__state[8];
};
enum { __nvl_backup = 1, __nvl_clobber = 2, __nvl_readonly = 3 };
void __nvl_tx_begin(struct __nvl_tx *tx, int default_kind, int heap_count,
                    nvl_heap_t *const *heaps);
void __nvl_tx_range(struct __nvl_tx *tx, int kind, nvl const volatile void *start, long long count,
                    size_t size);
void __nvl_tx_end(struct __nvl_tx *tx);

#ifdef __NVLC__
/* The passes take this reference away. It is never defined: code that they have not seen does not
 * link, instead of running with stores that nobody makes durable. */
extern const char __nvl_code_was_not_compiled_by_durumcc;
static const char *const __nvl_needs_passes __attribute__((__used__, __retain__)) =
    &__nvl_code_was_not_compiled_by_durumcc;
/* What the command line asks of the passes; intermediate code carries it along. */
static const int __nvl_options __attribute__((__used__, __retain__)) = __NVL_OPTIONS__;
#else
/* An error where a compiler makes code of the call; where it does not know of that, one of the
 * linker. */
void __nvl_code_was_not_compiled_by_durumcc(void) __attribute__((
    __error__("nvl.h needs durumcc: compile with `durumcc` in the place of cc, gcc or clang")));
static __attribute__((__used__)) void __nvl_needs_passes(void) {
    __nvl_code_was_not_compiled_by_durumcc();
}
#endif

#endif
