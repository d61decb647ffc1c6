#include "kv.h"

#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

/* Several times what the largest row needs; address space only. */
#define MAP_SIZE ((size_t)1 << 30)

struct store {
    MDB_env *env;
    MDB_dbi table;
};

static const char *version(void) {
    return mdb_version(NULL, NULL, NULL);
}

static int check(int code) {
    return code == 0 ? 0 : peer_kv_failed(mdb_strerror(code));
}

static void close_store(void *handle) {
    struct store *store = handle;
    if (store->env != NULL)
        mdb_env_close(store->env);
    free(store);
}

/* Integer keys are LMDB's fastest. */
static int open_table(struct store *store) {
    MDB_txn *txn;
    int code = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (code != 0)
        return code;
    code = mdb_dbi_open(txn, NULL, MDB_INTEGERKEY | MDB_CREATE, &store->table);
    if (code == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return code;
}

static void *open_store(const char *dir) {
    struct store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        peer_kv_failed("no memory");
        return NULL;
    }
    int code = mdb_env_create(&store->env);
    if (code == 0)
        code = mdb_env_set_mapsize(store->env, MAP_SIZE);
    if (code == 0)
        code = mdb_env_open(store->env, dir, 0, 0600);
    if (code == 0)
        code = open_table(store);
    if (check(code) != 0) {
        close_store(store);
        return NULL;
    }
    return store;
}

static int load(void *handle, const uint64_t *keys, const uint8_t *values, size_t len,
                size_t count) {
    struct store *store = handle;
    MDB_txn *txn;
    int code = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (code != 0)
        return check(code);
    for (size_t i = 0; i < count && code == 0; i++) {
        MDB_val key = {sizeof(keys[i]), (void *)&keys[i]};
        MDB_val value = {len, (void *)(values + i * len)};
        code = mdb_put(txn, store->table, &key, &value, 0);
    }
    if (code == 0)
        return check(mdb_txn_commit(txn));
    mdb_txn_abort(txn);
    return check(code);
}

static int put(void *handle, uint64_t key, const uint8_t *value, size_t len) {
    return load(handle, &key, value, len, 1);
}

static int visit(void *handle, peer_kv_see *see, void *context) {
    struct store *store = handle;
    MDB_txn *txn;
    MDB_cursor *cursor;
    int code = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return check(code);
    code = mdb_cursor_open(txn, store->table, &cursor);
    if (code == 0) {
        MDB_val key, value;
        while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
            uint64_t name = 0;
            memcpy(&name, key.mv_data, key.mv_size < sizeof(name) ? key.mv_size : sizeof(name));
            see(context, name, value.mv_data, value.mv_size);
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return check(code == MDB_NOTFOUND ? 0 : code);
}

const struct peer_kv_library peer_lmdb = {
    .version = version,
    .open = open_store,
    .close = close_store,
    .put = put,
    .load = load,
    .visit = visit,
};
