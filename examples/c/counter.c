/* Counts its runs, durably. */
#include <durum.h>
#include <stdio.h>

typedef struct counter {
    uint64_t value;
} counter;
DURUM_TYPE(counter, DURUM_FIELD(value))

int main(int argc, char **argv) {
    durum_store *store = durum_store_open_or_create(argc > 1 ? argv[1] : "counter.store", NULL);
    durum_pool *pool = durum_pool_open_or_create(store, "numbers", NULL);
    counter *runs = DURUM_ROOT(pool, counter);

    if (runs != NULL) {
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(runs); /* from here on, all of it or nothing */
            runs->value += 1;
        }
        DURUM_TX_END
    }
    int failed = durum_errorcode();
    if (failed)
        fprintf(stderr, "counter: %s\n", durum_errormsg());
    else
        printf("run %llu\n", (unsigned long long)runs->value);
    durum_pool_close(pool);
    durum_store_close(store);
    return failed ? 1 : 0;
}
