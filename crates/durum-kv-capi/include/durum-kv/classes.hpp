/*
 * The classes of durum_kv.hpp, which tells what they are. This file is included once for each
 * namespace that has them: durum::kv, and leveldb for programs that were written for LevelDB. In
 * the latter they are classes of their own and not other names, so that a program may declare them
 * ahead: `namespace leveldb { class DB; }`.
 *
 * DURUM_KV_NAMESPACE is where they go. There is no guard: who includes this has one.
 */
#include <cassert>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../durum_kv.h"

namespace DURUM_KV_NAMESPACE {

/* Bytes that somebody else owns. */
class Slice {
  public:
    Slice() : data_(""), size_(0) {}
    Slice(const char *data, size_t size) : data_(data), size_(size) {}
    Slice(const std::string &text) : data_(text.data()), size_(text.size()) {}
    Slice(const char *text) : data_(text), size_(std::strlen(text)) {}

    const char *data() const { return data_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    char operator[](size_t at) const {
        assert(at < size_);
        return data_[at];
    }
    void clear() { *this = Slice(); }
    void remove_prefix(size_t count) {
        assert(count <= size_);
        data_ += count;
        size_ -= count;
    }
    std::string ToString() const { return std::string(data_, size_); }
    int compare(const Slice &other) const {
        const size_t common = size_ < other.size_ ? size_ : other.size_;
        const int order = common == 0 ? 0 : std::memcmp(data_, other.data_, common);
        if (order != 0)
            return order;
        return size_ < other.size_ ? -1 : size_ > other.size_ ? 1 : 0;
    }
    bool starts_with(const Slice &prefix) const {
        return size_ >= prefix.size_ && Slice(data_, prefix.size_).compare(prefix) == 0;
    }

  private:
    const char *data_;
    size_t size_;
};

inline bool operator==(const Slice &a, const Slice &b) {
    return a.compare(b) == 0;
}
inline bool operator!=(const Slice &a, const Slice &b) {
    return !(a == b);
}

/* How an operation went. */
class Status {
  public:
    Status() = default;

    static Status OK() { return Status(); }
    static Status NotFound(const Slice &message, const Slice &more = Slice()) {
        return Status(kNotFound, message, more);
    }
    static Status Corruption(const Slice &message, const Slice &more = Slice()) {
        return Status(kCorruption, message, more);
    }
    static Status NotSupported(const Slice &message, const Slice &more = Slice()) {
        return Status(kNotSupported, message, more);
    }
    static Status InvalidArgument(const Slice &message, const Slice &more = Slice()) {
        return Status(kInvalidArgument, message, more);
    }
    static Status IOError(const Slice &message, const Slice &more = Slice()) {
        return Status(kIOError, message, more);
    }

    bool ok() const { return code_ == kOk; }
    bool IsNotFound() const { return code_ == kNotFound; }
    bool IsCorruption() const { return code_ == kCorruption; }
    bool IsIOError() const { return code_ == kIOError; }
    bool IsNotSupportedError() const { return code_ == kNotSupported; }
    bool IsInvalidArgument() const { return code_ == kInvalidArgument; }

    std::string ToString() const {
        static const char *const kinds[] = {
            "OK",        "NotFound: ", "Corruption: ", "Not implemented: ", "Invalid argument: ",
            "IO error: "};
        return kinds[code_] + message_;
    }

  private:
    enum Code { kOk, kNotFound, kCorruption, kNotSupported, kInvalidArgument, kIOError };

    Status(Code code, const Slice &message, const Slice &more)
        : code_(code), message_(message.ToString()) {
        if (!more.empty())
            message_ += ": " + more.ToString();
    }

    Code code_ = kOk;
    std::string message_;
};

namespace detail {

/* A message of the C interface, which goes with this. */
class Error {
  public:
    Error() = default;
    Error(const Error &) = delete;
    Error &operator=(const Error &) = delete;
    ~Error() { leveldb_free(message_); }

    char **place() { return &message_; }

    Status status() const {
        if (message_ == nullptr)
            return Status::OK();
        /* The kind stands in front of the message, and ToString puts it there again. */
        const char *end_of_kind = std::strstr(message_, ": ");
        const char *text = end_of_kind == nullptr ? message_ : end_of_kind + 2;
        switch (durum_kv_error_code()) {
        case DURUM_KV_NOT_FOUND:
            return Status::NotFound(text);
        case DURUM_KV_CORRUPTION:
            return Status::Corruption(text);
        case DURUM_KV_INVALID_ARGUMENT:
            return Status::InvalidArgument(text);
        default:
            return Status::IOError(text);
        }
    }

    /* What a call has found, if it has not failed; that is freed. */
    Status taken(char *found, size_t size, std::string *value) const {
        if (message_ != nullptr)
            return status();
        if (found == nullptr)
            return Status::NotFound(Slice());
        value->assign(found, size);
        leveldb_free(found);
        return Status::OK();
    }

  private:
    char *message_ = nullptr;
};

template <class T, void (*Destroy)(T *)> struct Destroyer {
    void operator()(T *object) const { Destroy(object); }
};
template <class T, void (*Destroy)(T *)> using Owned = std::unique_ptr<T, Destroyer<T, Destroy>>;

} // namespace detail

/* An order of keys. Its name is stored with the database. */
class Comparator {
  public:
    virtual ~Comparator() = default;
    virtual int Compare(const Slice &a, const Slice &b) const = 0;
    virtual const char *Name() const = 0;
    /* LevelDB shortens keys by them; they are not called here. */
    virtual void FindShortestSeparator(std::string *start, const Slice &limit) const = 0;
    virtual void FindShortSuccessor(std::string *key) const = 0;
};

namespace detail {

class Bytewise : public Comparator {
  public:
    int Compare(const Slice &a, const Slice &b) const override { return a.compare(b); }
    const char *Name() const override { return "leveldb.BytewiseComparator"; }
    void FindShortestSeparator(std::string *, const Slice &) const override {}
    void FindShortSuccessor(std::string *) const override {}
};

inline int compare(void *state, const char *a, size_t a_size, const char *b, size_t b_size) {
    return static_cast<const Comparator *>(state)->Compare(Slice(a, a_size), Slice(b, b_size));
}

inline const char *compare_name(void *state) {
    return static_cast<const Comparator *>(state)->Name();
}

inline void keep(void *) {}

} // namespace detail

/* The order of bytes, which is the default. It stays. */
inline const Comparator *BytewiseComparator() {
    static const detail::Bytewise bytewise;
    return &bytewise;
}

/* ---- without effect ----------------------------------------------------------------------- */

class Cache {
  public:
    virtual ~Cache() = default;
};

inline Cache *NewLRUCache(size_t) {
    return new Cache;
}

class FilterPolicy {
  public:
    virtual ~FilterPolicy() = default;
    virtual const char *Name() const = 0;
    virtual void CreateFilter(const Slice *keys, int count, std::string *filter) const = 0;
    virtual bool KeyMayMatch(const Slice &key, const Slice &filter) const = 0;
};

namespace detail {

class NoFilter : public FilterPolicy {
  public:
    const char *Name() const override { return "leveldb.BuiltinBloomFilter2"; }
    void CreateFilter(const Slice *, int, std::string *) const override {}
    bool KeyMayMatch(const Slice &, const Slice &) const override { return true; }
};

} // namespace detail

inline const FilterPolicy *NewBloomFilterPolicy(int) {
    return new detail::NoFilter;
}

/* Time, and a place for tests. Databases do not use it, nor has it LevelDB's functions for files
 * and threads. */
class Env {
  public:
    Env() = default;
    Env(const Env &) = delete;
    Env &operator=(const Env &) = delete;
    virtual ~Env() = default;

    static Env *Default() {
        static Env only;
        return &only;
    }

    virtual uint64_t NowMicros() {
        const auto since = std::chrono::system_clock::now().time_since_epoch();
        return static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(since).count());
    }
    virtual void SleepForMicroseconds(int micros) {
        std::this_thread::sleep_for(std::chrono::microseconds(micros));
    }
    /* A directory that is there. */
    virtual Status GetTestDirectory(std::string *path) {
        char *found = leveldb_env_get_test_directory(nullptr);
        if (found == nullptr)
            return Status::IOError("no directory for tests can be made");
        path->assign(found);
        leveldb_free(found);
        return Status::OK();
    }
};

/* Databases write nothing to it. */
class Logger {
  public:
    Logger() = default;
    Logger(const Logger &) = delete;
    Logger &operator=(const Logger &) = delete;
    virtual ~Logger() = default;
    virtual void Logv(const char *format, std::va_list arguments) = 0;
};

/* For the program's own messages. */
#if defined(__GNUC__)
__attribute__((__format__(__printf__, 2, 3)))
#endif
inline void
Log(Logger *logger, const char *format, ...) {
    if (logger == nullptr)
        return;
    std::va_list arguments;
    va_start(arguments, format);
    logger->Logv(format, arguments);
    va_end(arguments);
}

enum CompressionType { kNoCompression = 0, kSnappyCompression = 1, kZstdCompression = 2 };

/* ---- options ------------------------------------------------------------------------------ */

class Snapshot {
  protected:
    virtual ~Snapshot() = default;
};

struct Options {
    const Comparator *comparator = BytewiseComparator();
    bool create_if_missing = false;
    bool error_if_exists = false;
    /* Every record is checked when the database is opened. */
    bool paranoid_checks = false;

    /* Not LevelDB's: writes without `sync` need not be durable when they return. */
    bool buffered = false;
    /* Not LevelDB's: open a database that is there for reading only, which needs no right to write;
     * every write fails. */
    bool read_only = false;
    /* Not LevelDB's: the engine of a database that is made: "shadow", "hybrid" or "twin". Empty:
     * the default. */
    std::string engine;

    /* Without effect. */
    Env *env = Env::Default();
    Logger *info_log = nullptr;
    size_t write_buffer_size = 4 << 20;
    int max_open_files = 1000;
    Cache *block_cache = nullptr;
    size_t block_size = 4 << 10;
    int block_restart_interval = 16;
    size_t max_file_size = 2 << 20;
    CompressionType compression = kSnappyCompression;
    int zstd_compression_level = 1;
    bool reuse_logs = false;
    const FilterPolicy *filter_policy = nullptr;
};

struct ReadOptions {
    bool verify_checksums = false;
    bool fill_cache = true;
    const Snapshot *snapshot = nullptr;
};

struct WriteOptions {
    bool sync = false;
};

/* ---- batches ------------------------------------------------------------------------------ */

class WriteBatch {
  public:
    class Handler {
      public:
        virtual ~Handler() = default;
        virtual void Put(const Slice &key, const Slice &value) = 0;
        virtual void Delete(const Slice &key) = 0;
    };

    WriteBatch() : batch_(leveldb_writebatch_create()) {}
    WriteBatch(const WriteBatch &other) : WriteBatch() { Append(other); }
    WriteBatch &operator=(const WriteBatch &other) {
        if (this != &other) {
            Clear();
            Append(other);
        }
        return *this;
    }

    void Put(const Slice &key, const Slice &value) {
        leveldb_writebatch_put(batch_.get(), key.data(), key.size(), value.data(), value.size());
    }
    void Delete(const Slice &key) {
        leveldb_writebatch_delete(batch_.get(), key.data(), key.size());
    }
    void Clear() { leveldb_writebatch_clear(batch_.get()); }
    void Append(const WriteBatch &source) {
        leveldb_writebatch_append(batch_.get(), source.batch_.get());
    }
    size_t ApproximateSize() const { return durum_kv_writebatch_size(batch_.get()); }

    /* The handler throws nothing. */
    Status Iterate(Handler *handler) const {
        leveldb_writebatch_iterate(
            batch_.get(), handler,
            [](void *state, const char *key, size_t key_size, const char *value, size_t size) {
                static_cast<Handler *>(state)->Put(Slice(key, key_size), Slice(value, size));
            },
            [](void *state, const char *key, size_t key_size) {
                static_cast<Handler *>(state)->Delete(Slice(key, key_size));
            });
        return Status::OK();
    }

    leveldb_writebatch_t *c_handle() { return batch_.get(); }

  private:
    detail::Owned<leveldb_writebatch_t, leveldb_writebatch_destroy> batch_;
};

/* ---- iterators ---------------------------------------------------------------------------- */

class Iterator {
  public:
    using CleanupFunction = void (*)(void *arg1, void *arg2);

    Iterator() = default;
    Iterator(const Iterator &) = delete;
    Iterator &operator=(const Iterator &) = delete;
    virtual ~Iterator() {
        for (const auto &cleanup : cleanups_)
            cleanup();
    }

    virtual bool Valid() const = 0;
    virtual void SeekToFirst() = 0;
    virtual void SeekToLast() = 0;
    virtual void Seek(const Slice &target) = 0;
    virtual void Next() = 0;
    virtual void Prev() = 0;
    virtual Slice key() const = 0;
    virtual Slice value() const = 0;
    virtual Status status() const = 0;

    void RegisterCleanup(CleanupFunction function, void *arg1, void *arg2) {
        cleanups_.push_back([=] { function(arg1, arg2); });
    }

  private:
    std::vector<std::function<void()>> cleanups_;
};

namespace detail {

class DbIterator : public Iterator {
  public:
    explicit DbIterator(leveldb_iterator_t *entries) : entries_(entries) {}

    bool Valid() const override { return leveldb_iter_valid(entries_.get()) != 0; }
    void SeekToFirst() override { leveldb_iter_seek_to_first(entries_.get()); }
    void SeekToLast() override { leveldb_iter_seek_to_last(entries_.get()); }
    void Seek(const Slice &target) override {
        leveldb_iter_seek(entries_.get(), target.data(), target.size());
    }
    void Next() override { leveldb_iter_next(entries_.get()); }
    void Prev() override { leveldb_iter_prev(entries_.get()); }
    Slice key() const override {
        size_t size;
        const char *data = leveldb_iter_key(entries_.get(), &size);
        return Slice(data, size);
    }
    Slice value() const override {
        size_t size;
        const char *data = leveldb_iter_value(entries_.get(), &size);
        return Slice(data, size);
    }
    Status status() const override {
        Error error;
        leveldb_iter_get_error(entries_.get(), error.place());
        return error.status();
    }

  private:
    Owned<leveldb_iterator_t, leveldb_iter_destroy> entries_;
};

class DbSnapshot : public Snapshot {
  public:
    explicit DbSnapshot(leveldb_t *db) : db(db), snapshot(leveldb_create_snapshot(db)) {}
    ~DbSnapshot() override { leveldb_release_snapshot(db, snapshot); }

    leveldb_t *const db;
    const leveldb_snapshot_t *const snapshot;
};

} // namespace detail

/* ---- databases ---------------------------------------------------------------------------- */

struct Range {
    Range() = default;
    Range(const Slice &start, const Slice &limit) : start(start), limit(limit) {}
    Slice start;
    Slice limit;
};

/* Not LevelDB's. Sees what it has written; ends by Commit, by Abort, or with this object, on the
 * thread that began it, before its DB. Other writers wait meanwhile. */
class Transaction {
  public:
    Transaction(const Transaction &) = delete;
    Transaction &operator=(const Transaction &) = delete;
    ~Transaction() { Abort(); }

    Status Get(const Slice &key, std::string *value) const {
        detail::Error error;
        size_t size;
        char *found =
            durum_kv_transaction_get(transaction_, key.data(), key.size(), &size, error.place());
        return error.taken(found, size, value);
    }
    void Put(const Slice &key, const Slice &value) {
        durum_kv_transaction_put(transaction_, key.data(), key.size(), value.data(), value.size());
    }
    void Delete(const Slice &key) {
        durum_kv_transaction_delete(transaction_, key.data(), key.size());
    }
    Status Commit() {
        if (transaction_ == nullptr)
            return Status::InvalidArgument("the transaction has ended");
        detail::Error error;
        durum_kv_transaction_commit(transaction_, nullptr, error.place());
        transaction_ = nullptr;
        return error.status();
    }
    void Abort() {
        durum_kv_transaction_abort(transaction_);
        transaction_ = nullptr;
    }

  private:
    friend class DB;
    explicit Transaction(durum_kv_transaction_t *transaction) : transaction_(transaction) {}
    durum_kv_transaction_t *transaction_;
};

/* Not LevelDB's. A write that was made and may not be durable yet: DB::PutBegin. Wait, on the
 * thread that has written and before its DB is deleted, returns when it is. */
class InFlight {
  public:
    InFlight() = default;

    Status Wait() const {
        detail::Error error;
        if (in_flight_ != 0)
            durum_kv_wait(db_, in_flight_, error.place());
        return error.status();
    }

  private:
    friend class DB;
    InFlight(leveldb_t *db, uint64_t in_flight) : db_(db), in_flight_(in_flight) {}
    leveldb_t *db_ = nullptr;
    uint64_t in_flight_ = 0;
};

class DB {
  public:
    static Status Open(const Options &options, const std::string &name, DB **place);

    DB() = default;
    DB(const DB &) = delete;
    DB &operator=(const DB &) = delete;
    virtual ~DB() = default;

    /* Both have a body, for derived classes to call: a batch of the one change, for Write. */
    virtual Status Put(const WriteOptions &options, const Slice &key, const Slice &value) = 0;
    virtual Status Delete(const WriteOptions &options, const Slice &key) = 0;
    virtual Status Write(const WriteOptions &options, WriteBatch *updates) = 0;
    virtual Status Get(const ReadOptions &options, const Slice &key, std::string *value) = 0;
    virtual Iterator *NewIterator(const ReadOptions &options) = 0;
    virtual const Snapshot *GetSnapshot() = 0;
    virtual void ReleaseSnapshot(const Snapshot *snapshot) = 0;
    virtual bool GetProperty(const Slice &property, std::string *value) = 0;
    virtual void GetApproximateSizes(const Range *ranges, int count, uint64_t *sizes) = 0;
    virtual void CompactRange(const Slice *begin, const Slice *end) = 0;

    /* Not LevelDB's: begins a transaction. */
    Status BeginTransaction(std::unique_ptr<Transaction> *place) {
        place->reset();
        if (c_handle() == nullptr)
            return Status::NotSupported("this database has no transactions");
        detail::Error error;
        durum_kv_transaction_t *begun = durum_kv_transaction_begin(c_handle(), error.place());
        place->reset(begun == nullptr ? nullptr : new Transaction(begun));
        return error.status();
    }

    /* Not LevelDB's: the values of keys, in their order and of one moment, and how Get would say
     * that each was found; durum_kv_multi_get. A class of the program's own has this one, which
     * asks for one key after the other. */
    virtual std::vector<Status> MultiGet(const ReadOptions &options, const std::vector<Slice> &keys,
                                         std::vector<std::string> *values);

    /* Not LevelDB's: gives keys values, one pair after the other, and is no batch;
     * durum_kv_multi_put. */
    virtual Status MultiPut(const WriteOptions &options,
                            const std::vector<std::pair<Slice, Slice>> &pairs);

    /* Not LevelDB's: these write, and leave it to InFlight::Wait that it is durable;
     * durum_kv_put_begin. In a class of the program's own it is durable at once. */
    Status PutBegin(const Slice &key, const Slice &value, InFlight *place);
    Status DeleteBegin(const Slice &key, InFlight *place);
    Status WriteBegin(WriteBatch *updates, InFlight *place);

    /* Not LevelDB's: the database for functions of durum_kv.h. A class of the program's own that
     * has none keeps this, and has no transactions then. */
    virtual leveldb_t *c_handle() { return nullptr; }

  private:
    static WriteOptions synced() {
        WriteOptions options;
        options.sync = true;
        return options;
    }
};

inline Status DB::Put(const WriteOptions &options, const Slice &key, const Slice &value) {
    WriteBatch batch;
    batch.Put(key, value);
    return Write(options, &batch);
}

inline Status DB::Delete(const WriteOptions &options, const Slice &key) {
    WriteBatch batch;
    batch.Delete(key);
    return Write(options, &batch);
}

inline std::vector<Status> DB::MultiGet(const ReadOptions &options, const std::vector<Slice> &keys,
                                        std::vector<std::string> *values) {
    std::vector<Status> found;
    values->assign(keys.size(), std::string());
    for (size_t at = 0; at < keys.size(); at++)
        found.push_back(Get(options, keys[at], &(*values)[at]));
    return found;
}

inline Status DB::MultiPut(const WriteOptions &options,
                           const std::vector<std::pair<Slice, Slice>> &pairs) {
    for (const auto &pair : pairs) {
        const Status status = Put(options, pair.first, pair.second);
        if (!status.ok())
            return status;
    }
    return Status::OK();
}

inline Status DB::PutBegin(const Slice &key, const Slice &value, InFlight *place) {
    leveldb_t *db = c_handle();
    *place = InFlight();
    if (db == nullptr)
        return Put(synced(), key, value);
    detail::Error error;
    *place = InFlight(db, durum_kv_put_begin(db, key.data(), key.size(), value.data(), value.size(),
                                             error.place()));
    return error.status();
}

inline Status DB::DeleteBegin(const Slice &key, InFlight *place) {
    leveldb_t *db = c_handle();
    *place = InFlight();
    if (db == nullptr)
        return Delete(synced(), key);
    detail::Error error;
    *place = InFlight(db, durum_kv_delete_begin(db, key.data(), key.size(), error.place()));
    return error.status();
}

inline Status DB::WriteBegin(WriteBatch *updates, InFlight *place) {
    leveldb_t *db = c_handle();
    *place = InFlight();
    if (db == nullptr)
        return Write(synced(), updates);
    detail::Error error;
    leveldb_writebatch_t *batch = updates == nullptr ? nullptr : updates->c_handle();
    *place = InFlight(db, durum_kv_write_begin(db, batch, error.place()));
    return error.status();
}

namespace detail {

/* A row of byte strings, as C takes it. */
class Row {
  public:
    explicit Row(size_t count) {
        starts_.reserve(count);
        sizes_.reserve(count);
    }
    void push(const Slice &bytes) {
        starts_.push_back(bytes.data());
        sizes_.push_back(bytes.size());
    }
    const char *const *starts() const { return starts_.data(); }
    const size_t *sizes() const { return sizes_.data(); }

  private:
    std::vector<const char *> starts_;
    std::vector<size_t> sizes_;
};

using OwnedOptions = Owned<leveldb_options_t, leveldb_options_destroy>;
using OwnedComparator = Owned<leveldb_comparator_t, leveldb_comparator_destroy>;

/* Options for C. The comparator has to stay as long as the database. */
inline OwnedOptions to_c(const Options &options, OwnedComparator *comparator) {
    OwnedOptions to(leveldb_options_create());
    leveldb_options_set_create_if_missing(to.get(), options.create_if_missing);
    leveldb_options_set_error_if_exists(to.get(), options.error_if_exists);
    leveldb_options_set_paranoid_checks(to.get(), options.paranoid_checks);
    durum_kv_options_set_buffered(to.get(), options.buffered);
    durum_kv_options_set_read_only(to.get(), options.read_only);
    if (options.comparator != nullptr && options.comparator != BytewiseComparator()) {
        void *state = const_cast<Comparator *>(options.comparator);
        comparator->reset(leveldb_comparator_create(state, keep, compare, compare_name));
        leveldb_options_set_comparator(to.get(), comparator->get());
    }
    return to;
}

class Database : public DB {
  public:
    Database(leveldb_t *db, OwnedComparator comparator)
        : comparator_(std::move(comparator)), db_(db) {}

    Status Put(const WriteOptions &options, const Slice &key, const Slice &value) override {
        Error error;
        leveldb_put(db_.get(), writing(options), key.data(), key.size(), value.data(), value.size(),
                    error.place());
        return error.status();
    }
    Status Delete(const WriteOptions &options, const Slice &key) override {
        Error error;
        leveldb_delete(db_.get(), writing(options), key.data(), key.size(), error.place());
        return error.status();
    }
    Status Write(const WriteOptions &options, WriteBatch *updates) override {
        Error error;
        leveldb_writebatch_t *batch = updates == nullptr ? nullptr : updates->c_handle();
        leveldb_write(db_.get(), writing(options), batch, error.place());
        return error.status();
    }
    Status Get(const ReadOptions &options, const Slice &key, std::string *value) override {
        Error error;
        size_t size;
        const auto with = reading(options);
        char *found =
            leveldb_get(db_.get(), with.get(), key.data(), key.size(), &size, error.place());
        return error.taken(found, size, value);
    }
    std::vector<Status> MultiGet(const ReadOptions &options, const std::vector<Slice> &keys,
                                 std::vector<std::string> *values) override {
        const size_t count = keys.size();
        Error error;
        Row row(count);
        std::vector<char *> found(count);
        std::vector<size_t> sizes(count);
        values->assign(count, std::string());
        for (const Slice &key : keys)
            row.push(key);
        const auto with = reading(options);
        durum_kv_multi_get(db_.get(), with.get(), count, row.starts(), row.sizes(), found.data(),
                           sizes.data(), error.place());
        const Status status = error.status();
        if (!status.ok())
            return std::vector<Status>(count, status);
        std::vector<Status> statuses;
        statuses.reserve(count);
        for (size_t at = 0; at < count; at++)
            statuses.push_back(error.taken(found[at], sizes[at], &(*values)[at]));
        return statuses;
    }
    Status MultiPut(const WriteOptions &options,
                    const std::vector<std::pair<Slice, Slice>> &pairs) override {
        Error error;
        Row keys(pairs.size()), values(pairs.size());
        for (const auto &pair : pairs) {
            keys.push(pair.first);
            values.push(pair.second);
        }
        durum_kv_multi_put(db_.get(), writing(options), pairs.size(), keys.starts(), keys.sizes(),
                           values.starts(), values.sizes(), error.place());
        return error.status();
    }
    Iterator *NewIterator(const ReadOptions &options) override {
        return new DbIterator(leveldb_create_iterator(db_.get(), reading(options).get()));
    }
    const Snapshot *GetSnapshot() override { return new DbSnapshot(db_.get()); }
    void ReleaseSnapshot(const Snapshot *snapshot) override {
        delete static_cast<const DbSnapshot *>(snapshot);
    }
    bool GetProperty(const Slice &property, std::string *value) override {
        char *found = leveldb_property_value(db_.get(), property.ToString().c_str());
        if (found == nullptr)
            return false;
        value->assign(found);
        leveldb_free(found);
        return true;
    }
    void GetApproximateSizes(const Range *ranges, int count, uint64_t *sizes) override {
        for (int at = 0; at < count; at++) {
            const char *start = ranges[at].start.data(), *limit = ranges[at].limit.data();
            const size_t start_size = ranges[at].start.size(), limit_size = ranges[at].limit.size();
            leveldb_approximate_sizes(db_.get(), 1, &start, &start_size, &limit, &limit_size,
                                      &sizes[at]);
        }
    }
    void CompactRange(const Slice *, const Slice *) override {
        leveldb_compact_range(db_.get(), nullptr, 0, nullptr, 0);
    }
    leveldb_t *c_handle() override { return db_.get(); }

  private:
    using OwnedReading = Owned<leveldb_readoptions_t, leveldb_readoptions_destroy>;
    using OwnedWriting = Owned<leveldb_writeoptions_t, leveldb_writeoptions_destroy>;

    static OwnedReading reading(const ReadOptions &options) {
        if (!options.verify_checksums && options.snapshot == nullptr)
            return nullptr;
        OwnedReading to(leveldb_readoptions_create());
        leveldb_readoptions_set_verify_checksums(to.get(), options.verify_checksums);
        if (options.snapshot != nullptr)
            leveldb_readoptions_set_snapshot(
                to.get(), static_cast<const DbSnapshot *>(options.snapshot)->snapshot);
        return to;
    }
    static const leveldb_writeoptions_t *writing(const WriteOptions &options) {
        static const OwnedWriting synced = [] {
            OwnedWriting made(leveldb_writeoptions_create());
            leveldb_writeoptions_set_sync(made.get(), 1);
            return made;
        }();
        return options.sync ? synced.get() : nullptr;
    }

    /* Goes after the database. */
    OwnedComparator comparator_;
    Owned<leveldb_t, leveldb_close> db_;
};

class EmptyIterator : public Iterator {
  public:
    explicit EmptyIterator(Status status) : status_(std::move(status)) {}

    bool Valid() const override { return false; }
    void SeekToFirst() override {}
    void SeekToLast() override {}
    void Seek(const Slice &) override {}
    void Next() override {}
    void Prev() override {}
    Slice key() const override { return Slice(); }
    Slice value() const override { return Slice(); }
    Status status() const override { return status_; }

  private:
    const Status status_;
};

} // namespace detail

inline Status DB::Open(const Options &options, const std::string &name, DB **place) {
    *place = nullptr;
    detail::Error error;
    detail::OwnedComparator comparator;
    const detail::OwnedOptions to = detail::to_c(options, &comparator);
    if (!options.engine.empty() &&
        durum_kv_options_set_engine(to.get(), options.engine.c_str()) == 0)
        return Status::InvalidArgument("there is no engine of this name", options.engine);
    leveldb_t *db = leveldb_open(to.get(), name.c_str(), error.place());
    if (db != nullptr)
        *place = new detail::Database(db, std::move(comparator));
    return error.status();
}

inline Status DestroyDB(const std::string &name, const Options &options) {
    detail::Error error;
    detail::OwnedComparator comparator;
    leveldb_destroy_db(detail::to_c(options, &comparator).get(), name.c_str(), error.place());
    return error.status();
}

inline Status RepairDB(const std::string &name, const Options &options) {
    detail::Error error;
    detail::OwnedComparator comparator;
    leveldb_repair_db(detail::to_c(options, &comparator).get(), name.c_str(), error.place());
    return error.status();
}

inline Iterator *NewEmptyIterator() {
    return new detail::EmptyIterator(Status::OK());
}

inline Iterator *NewErrorIterator(const Status &status) {
    return new detail::EmptyIterator(status);
}

constexpr int kMajorVersion = 1;
constexpr int kMinorVersion = 23;

} // namespace DURUM_KV_NAMESPACE
