/*
 * What the C programs share: the last error, checks, and what a database holds of a key. Comes
 * behind the interface that the program knows.
 */
static char *error;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s; error: %s\n", __FILE__, __LINE__, #condition,              \
                    error ? error : "none");                                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define FINE() CHECK(error == NULL)

/* Whether the key has this value; NULL: none. */
static int holds(leveldb_t *db, leveldb_readoptions_t *reading, const char *key,
                 const char *expected) {
    size_t len;
    char *found = leveldb_get(db, reading, key, strlen(key), &len, &error);
    int equal;
    if (found == NULL)
        return expected == NULL && error == NULL;
    equal = expected != NULL && len == strlen(expected) && memcmp(found, expected, len) == 0;
    leveldb_free(found);
    return equal;
}
