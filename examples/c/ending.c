/* Threads that end inside of an update: what they did there is taken back, and the others go on. */
#include <durum.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

typedef struct counter {
    uint64_t value;
} counter;
DURUM_TYPE(counter, DURUM_FIELD(value))

static durum_pool *pool;
static counter *hits;

enum { THREADS = 4, HITS_MAX = 100, ENDED = -1 };

static void go_back(void *arg) {
    longjmp(*(jmp_buf *)arg, 1);
}

/* What the function returns, or ENDED if it ends its thread. */
static int until_it_ends(int (*function)(void *arg), void *arg) {
    jmp_buf here;
    volatile int code = ENDED;
    pthread_cleanup_push(go_back, &here);
    if (setjmp(here) == 0) {
        code = function(arg);
    }
    pthread_cleanup_pop(0);
    return code;
}

/* Takes the count one too far, and ends the thread. */
static int hit(void *arg) {
    (void)arg;
    int code = durum_tx_add(hits, sizeof(*hits));
    if (code != DURUM_OK) {
        return code;
    }
    hits->value += 1;
    if (hits->value > HITS_MAX) {
        pthread_exit(NULL);
    }
    return DURUM_OK;
}

static int hit_until_it_ends(void *arg) {
    return until_it_ends(hit, arg);
}

static void *hit_again_and_again(void *arg) {
    int code = DURUM_OK;
    while (code == DURUM_OK) {
        code = durum_pool_update(pool, hit_until_it_ends, arg);
        if (code == ENDED) {
            pthread_exit(NULL);
        }
    }
    fprintf(stderr, "ending: %s\n", durum_errormsg());
    return arg;
}

int main(int argc, char **argv) {
    durum_store *store = durum_store_open_or_create(argc > 1 ? argv[1] : "ending.store", NULL);
    pool = durum_pool_open_or_create(store, "numbers", NULL);
    hits = DURUM_ROOT(pool, counter);
    pthread_t threads[THREADS];
    int failed = hits == NULL, begun = 0;

    while (!failed && begun < THREADS) {
        failed = pthread_create(&threads[begun], NULL, hit_again_and_again, &pool) != 0;
        begun += !failed;
    }
    while (begun > 0) {
        void *told = NULL;
        failed |= pthread_join(threads[--begun], &told) != 0 || told != NULL;
    }
    if (!failed)
        printf("hits %llu\n", (unsigned long long)hits->value);
    durum_pool_close(pool);
    durum_store_close(store);
    return failed;
}
