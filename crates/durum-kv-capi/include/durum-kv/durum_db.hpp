/* A part of classes.hpp: the databases, iterators and snapshots that durum makes. */
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../durum_kv.h"

namespace DURUM_KV_NAMESPACE {

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

/* A row of what C has found. What is not taken goes with this. */
class FoundRow {
  public:
    explicit FoundRow(size_t count) : starts_(count), sizes_(count) {}
    FoundRow(const FoundRow &) = delete;
    FoundRow &operator=(const FoundRow &) = delete;
    ~FoundRow() {
        for (char *start : starts_)
            leveldb_free(start);
    }

    char **starts() { return starts_.data(); }
    size_t *sizes() { return sizes_.data(); }
    char *take(size_t at) { return std::exchange(starts_[at], nullptr); }

  private:
    std::vector<char *> starts_;
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
        FoundRow found(count);
        std::vector<Status> statuses;
        statuses.reserve(count);
        values->assign(count, std::string());
        for (const Slice &key : keys)
            row.push(key);
        const auto with = reading(options);
        durum_kv_multi_get(db_.get(), with.get(), count, row.starts(), row.sizes(), found.starts(),
                           found.sizes(), error.place());
        const Status status = error.status();
        if (!status.ok())
            return std::vector<Status>(count, status);
        for (size_t at = 0; at < count; at++) {
            const size_t size = found.sizes()[at];
            statuses.push_back(error.taken(found.take(at), size, &(*values)[at]));
        }
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

} // namespace DURUM_KV_NAMESPACE
