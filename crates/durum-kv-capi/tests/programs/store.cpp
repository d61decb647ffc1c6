// A program that knows LevelDB's C++ interface: it sees the same with either library, and, with
// OWN_NAMES, by durum's own header. Arguments: a directory to work in; or the address of a service,
// and what stands between that and a name.
#ifdef OWN_NAMES
#include <durum_kv.hpp>
namespace store = durum::kv;
#else
#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>
namespace store = leveldb;
#endif

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"

using Map = std::map<std::string, std::string>;

static Map contents(store::DB *db, const store::ReadOptions &options, bool backward) {
    Map map;
    std::unique_ptr<store::Iterator> entries(db->NewIterator(options));
    for (backward ? entries->SeekToLast() : entries->SeekToFirst(); entries->Valid();
         backward ? entries->Prev() : entries->Next())
        map[entries->key().ToString()] = entries->value().ToString();
    CHECK(entries->status().ok());
    return map;
}

class Backwards : public store::Comparator {
  public:
    int Compare(const store::Slice &a, const store::Slice &b) const override {
        return b.compare(a);
    }
    const char *Name() const override { return "backwards"; }
    void FindShortestSeparator(std::string *, const store::Slice &) const override {}
    void FindShortSuccessor(std::string *) const override {}
};

class Printer : public store::WriteBatch::Handler {
  public:
    void Put(const store::Slice &key, const store::Slice &value) override {
        text += "+" + key.ToString() + "=" + value.ToString();
    }
    void Delete(const store::Slice &key) override { text += "-" + key.ToString(); }
    std::string text;
};

static void ordinary(const std::string &path) {
    std::unique_ptr<store::Cache> cache(store::NewLRUCache(1 << 20));
    std::unique_ptr<const store::FilterPolicy> filter(store::NewBloomFilterPolicy(10));
    store::Options options;
    options.block_cache = cache.get();
    options.filter_policy = filter.get();
    options.compression = store::kNoCompression;
    store::DB *opened = nullptr;
    store::Status status = store::DB::Open(options, path, &opened);
    CHECK(status.IsInvalidArgument() && opened == nullptr && !status.ToString().empty());
    options.create_if_missing = true;
#ifdef OWN_NAMES
    options.engine = "steam";
    CHECK(store::DB::Open(options, path, &opened).IsInvalidArgument() && opened == nullptr);
    options.engine = "hybrid";
#endif
    CHECK(store::DB::Open(options, path, &opened).ok());
    std::unique_ptr<store::DB> db(opened);
    store::WriteOptions synced;
    synced.sync = true;
    std::string value;
    CHECK(db->Get(store::ReadOptions(), "one", &value).IsNotFound());
    CHECK(db->Put(synced, "one", "1").ok());
    CHECK(db->Put(store::WriteOptions(), store::Slice("t\0o", 3), std::string(5000, 'v')).ok());
    CHECK(db->Get(store::ReadOptions(), "one", &value).ok() && value == "1");
    const store::Snapshot *snapshot = db->GetSnapshot();
    store::WriteBatch batch;
    batch.Put("three", "3");
    batch.Delete("one");
    store::WriteBatch copy(batch);
    copy.Append(batch);
    Printer printer;
    CHECK(copy.Iterate(&printer).ok() && printer.text == "+three=3-one+three=3-one");
    CHECK(db->Write(synced, &batch).ok());
    CHECK(db->Get(store::ReadOptions(), "one", &value).IsNotFound());
    store::ReadOptions then;
    then.snapshot = snapshot;
    then.verify_checksums = true;
    CHECK(db->Get(then, "one", &value).ok() && value == "1");
    const Map before = {{"one", "1"}, {std::string("t\0o", 3), std::string(5000, 'v')}};
    CHECK(contents(db.get(), then, false) == before && contents(db.get(), then, true) == before);
    db->ReleaseSnapshot(snapshot);
    CHECK(contents(db.get(), store::ReadOptions(), true).size() == 2);
    int cleaned = 0;
    {
        std::unique_ptr<store::Iterator> entries(db->NewIterator(store::ReadOptions()));
        entries->RegisterCleanup([](void *count, void *) { ++*static_cast<int *>(count); },
                                 &cleaned, nullptr);
        entries->Seek("th");
        CHECK(entries->Valid() && entries->key() == "three" && entries->value().starts_with("3"));
    }
    CHECK(cleaned == 1);
    CHECK(db->GetProperty("leveldb.stats", &value) && !db->GetProperty("leveldb.none", &value));
    const store::Range range("a", "z");
    uint64_t size = 1;
    db->GetApproximateSizes(&range, 1, &size);
    db->CompactRange(nullptr, nullptr);
    CHECK(db->Delete(store::WriteOptions(), "three").ok());
#ifdef OWN_NAMES
    CHECK(db->GetProperty("durum.engine", &value) && value == "hybrid");
    CHECK(size > 5000);
    std::unique_ptr<store::Transaction> transaction;
    CHECK(db->BeginTransaction(&transaction).ok());
    transaction->Put("count", "1");
    transaction->Delete("t");
    CHECK(transaction->Get("count", &value).ok() && value == "1");
    CHECK(transaction->Get("t", &value).IsNotFound());
    CHECK(db->Get(store::ReadOptions(), "count", &value).IsNotFound());
    CHECK(db->Put(synced, "past it", "").IsInvalidArgument());
    CHECK(transaction->Commit().ok() && transaction->Commit().IsInvalidArgument());
    CHECK(db->Get(store::ReadOptions(), "count", &value).ok());
    CHECK(db->BeginTransaction(&transaction).ok());
    transaction->Put("count", "2");
    transaction.reset();
    CHECK(db->Get(store::ReadOptions(), "count", &value).ok() && value == "1");
    transaction.reset();
    const std::vector<std::pair<store::Slice, store::Slice>> pairs = {
        {"x", "1"}, {"y", "2"}, {"x", "3"}, {"", ""}};
    CHECK(db->MultiPut(store::WriteOptions(), pairs).ok() && db->MultiPut(synced, pairs).ok());
    CHECK(db->MultiPut(store::WriteOptions(), {}).ok());
    std::vector<std::string> values = {"before"};
    const std::vector<store::Slice> keys = {"y", "none", "x", "", "y"};
    std::vector<store::Status> found = db->MultiGet(store::ReadOptions(), keys, &values);
    CHECK(found.size() == 5 && values.size() == 5 && found[1].IsNotFound() && values[1].empty());
    CHECK(found[0].ok() && values[0] == "2" && found[2].ok() && values[2] == "3");
    CHECK(found[3].ok() && values[3].empty() && found[4].ok() && values[4] == "2");
    CHECK(db->MultiGet(store::ReadOptions(), {}, &values).empty() && values.empty());
    store::InFlight first, second;
    CHECK(first.Wait().ok());
    CHECK(db->PutBegin("x", "4", &first).ok() && db->DeleteBegin("y", &second).ok());
    CHECK(second.Wait().ok() && first.Wait().ok());
    CHECK(db->Get(store::ReadOptions(), "x", &value).ok() && value == "4");
    CHECK(db->Get(store::ReadOptions(), "y", &value).IsNotFound());
    store::WriteBatch begun;
    begun.Put("z", "5");
    CHECK(db->WriteBegin(&begun, &first).ok() && first.Wait().ok());
    CHECK(db->WriteBegin(nullptr, &first).ok() && first.Wait().ok());
    CHECK(db->Get(store::ReadOptions(), "z", &value).ok() && value == "5");
    CHECK(db->BeginTransaction(&transaction).ok());
    CHECK(db->PutBegin("x", "5", &first).IsInvalidArgument() && first.Wait().ok());
    transaction.reset();
    db.reset();
    store::Options reading;
    reading.read_only = true;
    CHECK(store::DB::Open(reading, path, &opened).ok());
    db.reset(opened);
    CHECK(db->Get(store::ReadOptions(), "count", &value).ok() && value == "1");
    CHECK(db->Put(synced, "count", "3").IsInvalidArgument());
    CHECK(db->BeginTransaction(&transaction).IsInvalidArgument());
#endif
    db.reset();
    options.error_if_exists = true;
    CHECK(store::DB::Open(options, path, &opened).IsInvalidArgument());
    CHECK(store::RepairDB(path, store::Options()).ok());
    CHECK(store::DestroyDB(path, options).ok());
    CHECK(store::DB::Open(store::Options(), path, &opened).IsInvalidArgument());
}

static void with_comparator(const std::string &path) {
    Backwards backwards;
    store::Options options;
    options.create_if_missing = true;
    options.comparator = &backwards;
    store::DB *opened = nullptr;
    CHECK(store::DB::Open(options, path, &opened).ok());
    std::unique_ptr<store::DB> db(opened);
    CHECK(db->Put(store::WriteOptions(), "a", "1").ok());
    CHECK(db->Put(store::WriteOptions(), "b", "2").ok());
    std::unique_ptr<store::Iterator> entries(db->NewIterator(store::ReadOptions()));
    entries->SeekToFirst();
    CHECK(entries->Valid() && entries->key() == "b");
    entries.reset();
    db.reset();
    options.comparator = store::BytewiseComparator();
    CHECK(store::DB::Open(options, path, &opened).IsInvalidArgument());
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    const std::string place = std::string(argv[1]) + (argc > 2 ? argv[2] : "/");
    ordinary(place + "db");
    with_comparator(place + "other");
    std::puts("all checks passed");
    return 0;
}
