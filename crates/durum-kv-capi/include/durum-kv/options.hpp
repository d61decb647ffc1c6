/* A part of classes.hpp: orders of keys, what has no effect here, and options. */
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include "../durum_kv.h"

namespace DURUM_KV_NAMESPACE {

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

} // namespace DURUM_KV_NAMESPACE
