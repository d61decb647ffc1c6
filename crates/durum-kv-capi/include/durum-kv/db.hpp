/* A part of classes.hpp: batches, iterators and databases, as programs use and derive from them. */
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../durum_kv.h"

namespace DURUM_KV_NAMESPACE {

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

} // namespace DURUM_KV_NAMESPACE
