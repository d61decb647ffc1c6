/* Counts how often each name was given: LevelDB's C interface. */
#include <durum_kv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds one to the number behind a name, and says the new one. */
static unsigned long long count(leveldb_t *db, const char *name, char **error) {
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    char text[32] = "";
    size_t length = 0;
    char *found = leveldb_get(db, reading, name, strlen(name), &length, error);
    if (found != NULL && length < sizeof(text))
        memcpy(text, found, length); /* the value has no NUL behind it */
    unsigned long long number = strtoull(text, NULL, 10) + 1;
    int written = snprintf(text, sizeof(text), "%llu", number);
    if (*error == NULL)
        leveldb_put(db, writing, name, strlen(name), text, (size_t)written, error);
    leveldb_free(found);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    return number;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "nobody";
    char *error = NULL;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_t *db = leveldb_open(options, "names", &error);
    unsigned long long number = db != NULL ? count(db, name, &error) : 0;
    if (error != NULL)
        fprintf(stderr, "%s\n", error);
    else
        printf("%s: %llu\n", name, number); /* durable by now */
    int failed = error != NULL;
    leveldb_free(error);
    if (db != NULL)
        leveldb_close(db);
    leveldb_options_destroy(options);
    return failed;
}
