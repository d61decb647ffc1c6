/* A test fails at its first wrong answer: it says which and ends its process. */
#ifndef CHECK_H
#define CHECK_H

#include <durum.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s (code %d: %s)\n", __FILE__, __LINE__, #condition,   \
                    durum_errorcode(), durum_errormsg());                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static inline void check_code(const char *file, int line, const char *call, int code,
                              int expected) {
    if (code != expected) {
        fprintf(stderr, "%s:%d: %s gave %d, not %d (%s)\n", file, line, call, code, expected,
                durum_errormsg());
        exit(1);
    }
}

/* A call that gives a code. */
#define CHECK_CODE(call, expected) check_code(__FILE__, __LINE__, #call, (call), (expected))

/* A call that gives NULL, with this code and a message. */
#define CHECK_NULL(call, expected)                                                                 \
    do {                                                                                           \
        CHECK((call) == NULL);                                                                     \
        CHECK_CODE(durum_errorcode(), expected);                                                   \
        CHECK(durum_errormsg()[0] != '\0');                                                        \
    } while (0)

/* A path in this test's own directory, which is empty at first. Valid until the next call. */
const char *scratch(const char *name);

/* The store of this test: the directory "store", or a durumd that serves it. */
const char *store_path(void);
int is_served(void);
/* The durumd dies, and a new one is there when this returns. */
void service_dies(void);
void service_comes(void);

/* A new store with a pool. */
typedef struct fixture {
    durum_store *store;
    durum_pool *pool;
} fixture;
fixture fixture_new(void);
void fixture_close(fixture *f);

/* An object with a bit of everything that transactions do. */
typedef struct cell {
    uint64_t value;
    uint64_t other;
    struct cell *next;
} cell;
DURUM_TYPE(cell, DURUM_FIELD(value), DURUM_FIELD(other), DURUM_PTR(next))

typedef struct test {
    const char *name;
    void (*run)(void);
} test;

/* Each file's tests, ended by a NULL name. */
extern const test store_tests[];
extern const test object_tests[];
extern const test transaction_tests[];
extern const test shared_tests[];
extern const test alone_tests[];
extern const test block_tests[];
extern const test local_tests[];
extern const test type_tests[];
extern const test migration_tests[];
extern const test log_tests[];
extern const test fault_tests[];
extern const test service_tests[];
extern const test reading_tests[];

#endif
