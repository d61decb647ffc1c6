// What programs do with LevelDB's headers besides opening databases: they declare classes ahead,
// derive their own, write through a logger. It compiles with LevelDB, too. Argument: a directory to
// work in.
namespace leveldb {
class Cache;
class Comparator;
class DB;
class Env;
class FilterPolicy;
class Iterator;
class Logger;
class Slice;
class Snapshot;
class Status;
class WriteBatch;
struct Options;
struct Range;
struct ReadOptions;
struct WriteOptions;
} // namespace leveldb

// Of a program's own header, which does not include LevelDB's.
static bool has(leveldb::DB *db, const leveldb::Slice &key);

#ifdef BOTH_NAMES
#include <durum_kv.hpp>
#endif
#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/export.h>
#include <leveldb/filter_policy.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/slice.h>
#include <leveldb/status.h>
#include <leveldb/write_batch.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"

// They are classes of the namespace, and no other names for others.
template <> struct std::hash<leveldb::Slice> {
    size_t operator()(const leveldb::Slice &slice) const {
        return std::hash<std::string>()(slice.ToString());
    }
};

class LEVELDB_EXPORT Text : public leveldb::Logger {
  public:
    void Logv(const char *format, std::va_list arguments) override {
        char line[100];
        std::vsnprintf(line, sizeof(line), format, arguments);
        text += line;
    }
    std::string text;
};

static void say(leveldb::Logger *logger, const char *format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    logger->Logv(format, arguments);
    va_end(arguments);
}

// Passes all on, and counts. Put and Delete go to Write by what DB has for them.
class Counting : public leveldb::DB {
  public:
    explicit Counting(leveldb::DB *db) : db_(db) {}

    leveldb::Status Put(const leveldb::WriteOptions &options, const leveldb::Slice &key,
                        const leveldb::Slice &value) override {
        ++puts;
        return DB::Put(options, key, value);
    }
    leveldb::Status Delete(const leveldb::WriteOptions &options,
                           const leveldb::Slice &key) override {
        return DB::Delete(options, key);
    }
    leveldb::Status Write(const leveldb::WriteOptions &options,
                          leveldb::WriteBatch *updates) override {
        ++writes;
        return db_->Write(options, updates);
    }
    leveldb::Status Get(const leveldb::ReadOptions &options, const leveldb::Slice &key,
                        std::string *value) override {
        return db_->Get(options, key, value);
    }
    leveldb::Iterator *NewIterator(const leveldb::ReadOptions &) override {
        return leveldb::NewErrorIterator(leveldb::Status::NotSupported("no", "iterators"));
    }
    const leveldb::Snapshot *GetSnapshot() override { return db_->GetSnapshot(); }
    void ReleaseSnapshot(const leveldb::Snapshot *snapshot) override {
        db_->ReleaseSnapshot(snapshot);
    }
    bool GetProperty(const leveldb::Slice &property, std::string *value) override {
        return db_->GetProperty(property, value);
    }
    void GetApproximateSizes(const leveldb::Range *ranges, int count, uint64_t *sizes) override {
        db_->GetApproximateSizes(ranges, count, sizes);
    }
    void CompactRange(const leveldb::Slice *begin, const leveldb::Slice *end) override {
        db_->CompactRange(begin, end);
    }

    int puts = 0, writes = 0;

  private:
    const std::unique_ptr<leveldb::DB> db_;
};

static bool has(leveldb::DB *db, const leveldb::Slice &key) {
    std::string value;
    return db->Get(leveldb::ReadOptions(), key, &value).ok();
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    Text log;
    say(&log, "%s is %d", "one", 1);
    CHECK(log.text == "one is 1");

    leveldb::Env *env = leveldb::Env::Default();
    const uint64_t begin = env->NowMicros();
    env->SleepForMicroseconds(3000);
    CHECK(env->NowMicros() - begin >= 3000);
    std::string directory;
    CHECK(env->GetTestDirectory(&directory).ok() && !directory.empty());

    std::unique_ptr<const leveldb::FilterPolicy> filter(leveldb::NewBloomFilterPolicy(10));
    CHECK(filter->Name() == std::string("leveldb.BuiltinBloomFilter2"));
    const leveldb::Slice keys[] = {"a", "b"};
    std::string bits;
    filter->CreateFilter(keys, 2, &bits);
    CHECK(filter->KeyMayMatch("a", bits) && filter->KeyMayMatch("b", bits));

    leveldb::Options options;
    options.create_if_missing = true;
    options.info_log = &log;
    options.env = env;
    options.filter_policy = filter.get();
    leveldb::DB *opened = nullptr;
    CHECK(leveldb::DB::Open(options, std::string(argv[1]) + "/db", &opened).ok());
    std::unique_ptr<Counting> db(new Counting(opened));
    CHECK(db->Put(leveldb::WriteOptions(), "a", "1").ok() && db->puts == 1);
    CHECK(has(db.get(), "a") && !has(db.get(), "b"));
    CHECK(db->Delete(leveldb::WriteOptions(), "a").ok() && db->writes == 2 && !has(db.get(), "a"));
    std::unique_ptr<leveldb::Iterator> entries(db->NewIterator(leveldb::ReadOptions()));
    entries->SeekToFirst();
    CHECK(!entries->Valid() && entries->status().IsNotSupportedError());
    CHECK(entries->status().ToString() == "Not implemented: no: iterators");
    entries.reset(leveldb::NewEmptyIterator());
    CHECK(!entries->Valid() && entries->status().ok());
    CHECK(std::hash<leveldb::Slice>()("a") == std::hash<std::string>()("a"));
#ifdef BOTH_NAMES
    // LevelDB's shared library does not give this one out.
    leveldb::Log(&log, ", %s is %d", "two", 2);
    CHECK(log.text == "one is 1, two is 2");
    leveldb::Log(nullptr, "nothing");
    // Transactions are the database's and not the wrapper's.
    std::unique_ptr<leveldb::Transaction> transaction;
    CHECK(db->BeginTransaction(&transaction).IsNotSupportedError() && transaction == nullptr);
    CHECK(opened->BeginTransaction(&transaction).ok());
    transaction.reset();
    // A wrapper without functions for them goes from pair to pair, and what begins is durable.
    std::vector<std::string> values;
    CHECK(db->MultiPut(leveldb::WriteOptions(), {{"x", "1"}, {"y", "2"}}).ok() && db->puts == 3);
    const auto found = db->MultiGet(leveldb::ReadOptions(), {"y", "none"}, &values);
    CHECK(found.size() == 2 && found[0].ok() && values[0] == "2" && found[1].IsNotFound());
    leveldb::InFlight first, second;
    CHECK(db->PutBegin("z", "3", &first).ok() && db->puts == 4 && first.Wait().ok());
    CHECK(has(db.get(), "z") && db->DeleteBegin("z", &second).ok() && second.Wait().ok());
    leveldb::WriteBatch begun;
    begun.Put("z", "4");
    CHECK(!has(db.get(), "z") && db->WriteBegin(&begun, &first).ok() && has(db.get(), "z"));
    durum::kv::DB *other = nullptr;
    durum::kv::Options own;
    own.create_if_missing = true;
    CHECK(durum::kv::DB::Open(own, std::string(argv[1]) + "/own", &other).ok());
    delete other;
#endif
    db.reset();
    std::puts("all checks passed");
    return 0;
}
