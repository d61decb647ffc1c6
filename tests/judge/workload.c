/* The program that the judge of power cuts watches: transactions of all kinds, on two pools for
 * each thread.
 *
 *     workload STORE ENGINE run STEPS THREADS   goes on where it was; says each step before and
 * after workload STORE ENGINE check               looks whether all is there that its steps have
 * put there
 *
 * ENGINE: shadow, hybrid, twin, twin-lr (readers do not wait). It prints "begun THREAD N" before
 * its N-th step can have an effect, "done THREAD N" once that is durable, and `check` prints "holds
 * THREAD N". What step N does is the same in every run, so N tells all contents.
 */
#include <durum.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 24, CELLS = 700, THREADS_MAX = 4, LOG_BYTES_MAX = 1 << 20 };

typedef struct block {
    uint64_t step;
    uint64_t size;
    uint64_t words[];
} block;
DURUM_TYPE(block, DURUM_FIELD(step), DURUM_FIELD(size), DURUM_TAIL(words))

/* `steps` is how many are done; the cells count what each has been given. */
typedef struct first {
    uint64_t steps;
    uint64_t sum;
    uint64_t cells[CELLS];
    block *slots[SLOTS];
} first;
DURUM_TYPE(first, DURUM_FIELD(steps), DURUM_FIELD(sum), DURUM_ARRAY(cells),
           DURUM_PTR_ARRAY_TO(slots, block))

/* In another pool, changed by every third step together with the first. */
typedef struct second {
    uint64_t last;
    uint64_t cells[CELLS];
    block *kept;
} second;
DURUM_TYPE(second, DURUM_FIELD(last), DURUM_ARRAY(cells), DURUM_PTR_TO(kept, block))

typedef struct single {
    uint64_t step;
} single;
DURUM_TYPE(single, DURUM_FIELD(step))

/* What step number `step` of a thread does. */
typedef struct action {
    unsigned slot;
    unsigned cell[3];
    uint64_t size; /* of the new block; 0: the old one is freed only */
    int concerns_second;
    int is_buffered;
    int makes_pool;
    int removes_pool;
} action;

static uint64_t mix(uint64_t value) {
    value = (value + 1) * 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

static action action_of(unsigned thread, uint64_t step) {
    static const uint64_t sizes[] = {24,  0, 200, 64,  3000,  120, 24,   12000,
                                     500, 0, 40,  100, 70000, 24,  1000, 16};
    uint64_t drawn = mix(step * THREADS_MAX + thread);
    action now;
    now.slot = drawn % SLOTS;
    for (unsigned i = 0; i < 3; i++) {
        now.cell[i] = (drawn >> (10 + 10 * i)) % CELLS;
    }
    now.size = sizes[drawn >> 60];
    if (step % 29 == 28) {
        now.size = 300000; /* more than the log takes: such an object is written home */
    }
    now.concerns_second = step % 3 == 0;
    now.is_buffered = step % 5 == 4;
    now.makes_pool = step % 10 == 6;
    now.removes_pool = step % 10 == 9;
    return now;
}

static uint64_t word_of(unsigned thread, uint64_t step, uint64_t index) {
    return mix((step << 32) + (index << 3) + thread);
}

static uint64_t words_of(uint64_t size) {
    return (size + 7) / 8;
}

typedef struct run_of_thread {
    durum_store *store;
    const char *engine;
    unsigned thread;
    uint64_t steps;
    durum_pool *first_pool,
        *second_pool; /* none for twins: a transaction on one of them is on that one alone */
    int failed;
} run_of_thread;

static void name_of(char *name, const char *what, unsigned thread) {
    sprintf(name, "%s-%u", what, thread);
}

static durum_pool_options options_of(const char *engine) {
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    if (strcmp(engine, "hybrid") == 0) {
        options.engine = DURUM_ENGINE_HYBRID;
    } else if (strncmp(engine, "twin", 4) == 0) {
        options.engine = DURUM_ENGINE_TWIN;
        options.flags = strcmp(engine, "twin-lr") == 0 ? DURUM_POOL_LEFT_RIGHT : 0;
    }
    return options;
}

static int has_second(const run_of_thread *run) {
    return strncmp(run->engine, "twin", 4) != 0;
}

static durum_pool *open_pool(run_of_thread *run, const char *what, int make) {
    durum_pool_options options = options_of(run->engine);
    char name[32];
    name_of(name, what, run->thread);
    return make ? durum_pool_open_or_create(run->store, name, &options)
                : durum_pool_open(run->store, name, &options);
}

static void complain(const char *what) {
    fprintf(stderr, "workload: %s: %d: %s\n", what, durum_errorcode(), durum_errormsg());
}

/* ---- the steps ---- */

/* Fills the block of the step; a fresh object needs no DURUM_TX_ADD. */
static block *new_block(durum_pool *pool, unsigned thread, uint64_t step, uint64_t size) {
    block *made = durum_malloc(pool, DURUM_TYPE_OF(block), sizeof(block) + 8 * words_of(size));
    if (made == NULL) {
        durum_tx_check(durum_errorcode());
        return NULL;
    }
    made->step = step;
    made->size = size;
    for (uint64_t i = 0; i < words_of(size); i++) {
        made->words[i] = word_of(thread, step, i);
    }
    return made;
}

static int take_step(run_of_thread *run, first *one, second *two, uint64_t step) {
    const action now = action_of(run->thread, step);
    DURUM_TX_BEGIN_WITH (run->first_pool, now.is_buffered ? DURUM_BUFFERED : DURUM_DURABLE) {
        block *old = one->slots[now.slot];
        if (old != NULL) {
            DURUM_TX_FREE(old);
        }
        DURUM_TX_ADD(&one->slots[now.slot]);
        one->slots[now.slot] =
            now.size == 0 ? NULL : new_block(run->first_pool, run->thread, step, now.size);
        for (unsigned i = 0; i < 3; i++) {
            DURUM_TX_ADD(&one->cells[now.cell[i]]);
            one->cells[now.cell[i]] += step + i;
        }
        DURUM_TX_REDO_SET(&one->sum, one->sum + step);
        if (two != NULL && now.concerns_second) {
            DURUM_TX_ADD(&two->last);
            two->last = step;
            DURUM_TX_ADD(&two->cells[now.cell[0]]);
            two->cells[now.cell[0]] += 1;
            if (two->kept != NULL) {
                DURUM_TX_FREE(two->kept);
            }
            DURUM_TX_ADD(&two->kept);
            two->kept = new_block(run->second_pool, run->thread, step, 90);
        }
        DURUM_TX_ADD(&one->steps);
        one->steps = step + 1;
    }
    DURUM_TX_END
    return durum_errorcode();
}

static int make_single(run_of_thread *run, uint64_t step) {
    durum_pool *pool = open_pool(run, "single", 1);
    single *root = DURUM_ROOT(pool, single);
    if (root != NULL) {
        DURUM_TX_BEGIN (pool) {
            DURUM_TX_ADD(root);
            root->step = step;
        }
        DURUM_TX_END
    }
    int code = durum_errorcode();
    durum_pool_close(pool);
    return code;
}

static int remove_single(run_of_thread *run) {
    char name[32];
    name_of(name, "single", run->thread);
    int code = durum_pool_remove(run->store, name);
    return code == DURUM_E_POOL_MISSING ? DURUM_OK : code;
}

static void *run_steps(void *argument) {
    run_of_thread *run = argument;
    run->failed = 1;
    first *one = DURUM_ROOT(run->first_pool, first);
    second *two = has_second(run) ? DURUM_ROOT(run->second_pool, second) : NULL;
    if (one == NULL || (two == NULL && has_second(run))) {
        complain("root");
        return NULL;
    }
    dprintf(1, "done %u %llu\n", run->thread, (unsigned long long)one->steps);
    for (uint64_t end = one->steps + run->steps; one->steps < end;) {
        const uint64_t step = one->steps;
        const action now = action_of(run->thread, step);
        dprintf(1, "begun %u %llu\n", run->thread, (unsigned long long)step + 1);
        int code = now.makes_pool     ? make_single(run, step)
                   : now.removes_pool ? remove_single(run)
                                      : DURUM_OK;
        if (code == DURUM_OK) {
            code = take_step(run, one, two, step);
        }
        if (code != DURUM_OK) {
            complain("step");
            return NULL;
        }
        /* A buffered one is durable with the next that is not. */
        if (!now.is_buffered) {
            dprintf(1, "done %u %llu\n", run->thread, (unsigned long long)step + 1);
        }
    }
    run->failed = 0;
    return NULL;
}

static int run_threads(durum_store *store, const char *engine, uint64_t steps, unsigned threads) {
    run_of_thread runs[THREADS_MAX];
    pthread_t handles[THREADS_MAX];
    int failed = 0;
    for (unsigned i = 0; i < threads; i++) {
        runs[i] = (run_of_thread){store, engine, i, steps, NULL, NULL, 0};
        runs[i].first_pool = open_pool(&runs[i], "first", 1);
        runs[i].second_pool = has_second(&runs[i]) ? open_pool(&runs[i], "second", 1) : NULL;
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_create(&handles[i], NULL, run_steps, &runs[i]);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(handles[i], NULL);
        failed |= runs[i].failed;
        durum_pool_close(runs[i].first_pool);
        durum_pool_close(runs[i].second_pool);
    }
    return failed;
}

/* ---- what has to be there ---- */

static int holds(const block *found, unsigned thread, uint64_t step, uint64_t size) {
    if (found == NULL || found->step != step || found->size != size) {
        return 0;
    }
    for (uint64_t i = 0; i < words_of(size); i++) {
        if (found->words[i] != word_of(thread, step, i)) {
            return 0;
        }
    }
    return 1;
}

static int is_as_its_steps_made_it(const first *one, const second *two, unsigned thread) {
    first wanted = {0};
    second wanted_two = {0};
    uint64_t sizes[SLOTS] = {0}, steps[SLOTS] = {0};
    for (uint64_t step = 0; step < one->steps; step++) {
        const action now = action_of(thread, step);
        sizes[now.slot] = now.size;
        steps[now.slot] = step;
        wanted.sum += step;
        for (unsigned i = 0; i < 3; i++) {
            wanted.cells[now.cell[i]] += step + i;
        }
        if (now.concerns_second) {
            wanted_two.last = step;
            wanted_two.cells[now.cell[0]] += 1;
        }
    }
    int is_right = 1;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        const block *found = one->slots[slot];
        if (sizes[slot] == 0 ? found != NULL : !holds(found, thread, steps[slot], sizes[slot])) {
            fprintf(stderr, "thread %u: slot %u\n", thread, slot);
            is_right = 0;
        }
    }
    if (wanted.sum != one->sum || memcmp(wanted.cells, one->cells, sizeof(one->cells)) != 0) {
        fprintf(stderr, "thread %u: cells\n", thread);
        is_right = 0;
    }
    if (two == NULL) {
        return is_right;
    }
    if (wanted_two.last != two->last ||
        memcmp(wanted_two.cells, two->cells, sizeof(two->cells)) != 0 ||
        (one->steps == 0 ? two->kept != NULL : !holds(two->kept, thread, two->last, 90))) {
        fprintf(stderr, "thread %u: the second pool\n", thread);
        is_right = 0;
    }
    return is_right;
}

/* The pool that some steps make and others remove; the step that is under way may have done either.
 */
static int single_is_right(run_of_thread *run, uint64_t steps) {
    int wanted = 0;
    uint64_t made_by = 0;
    for (uint64_t step = 0; step < steps; step++) {
        const action now = action_of(run->thread, step);
        wanted = now.makes_pool ? 1 : now.removes_pool ? 0 : wanted;
        made_by = now.makes_pool ? step : made_by;
    }
    const action next = action_of(run->thread, steps);
    durum_pool *pool = open_pool(run, "single", 0);
    if (pool == NULL && durum_errorcode() != DURUM_E_POOL_MISSING) {
        complain("single");
        return 0;
    }
    if (next.makes_pool || next.removes_pool) {
        durum_pool_close(pool);
        return 1;
    }
    int is_right = (pool != NULL) == wanted;
    if (pool != NULL && wanted) {
        const single *root = DURUM_ROOT(pool, single);
        is_right = root != NULL && root->step == made_by;
    }
    durum_pool_close(pool);
    if (!is_right) {
        fprintf(stderr, "thread %u: the single pool of step %llu\n", run->thread,
                (unsigned long long)made_by);
    }
    return is_right;
}

static int check(durum_store *store, const char *engine) {
    int failed = 0;
    for (unsigned thread = 0; thread < THREADS_MAX; thread++) {
        run_of_thread run = {store, engine, thread, 0, NULL, NULL, 0};
        run.first_pool = open_pool(&run, "first", 0);
        if (run.first_pool == NULL && durum_errorcode() == DURUM_E_POOL_MISSING) {
            continue;
        }
        run.second_pool =
            run.first_pool != NULL && has_second(&run) ? open_pool(&run, "second", 0) : NULL;
        if (run.second_pool == NULL && run.first_pool != NULL && has_second(&run) &&
            durum_errorcode() == DURUM_E_POOL_MISSING) {
            durum_pool_close(run.first_pool);
            continue;
        }
        const first *one = DURUM_ROOT(run.first_pool, first);
        const second *two = run.second_pool != NULL ? DURUM_ROOT(run.second_pool, second) : NULL;
        if (one == NULL || (two == NULL && has_second(&run))) {
            complain("root");
            return 1;
        }
        if (!is_as_its_steps_made_it(one, two, thread) || !single_is_right(&run, one->steps)) {
            fprintf(stderr, "thread %u: not what its %llu steps make\n", thread,
                    (unsigned long long)one->steps);
            failed = 1;
        }
        printf("holds %u %llu\n", thread, (unsigned long long)one->steps);
        durum_pool_close(run.first_pool);
        durum_pool_close(run.second_pool);
    }
    return failed;
}

int main(int argc, char **argv) {
    if (!(argc == 6 && strcmp(argv[3], "run") == 0) &&
        !(argc == 4 && strcmp(argv[3], "check") == 0)) {
        fprintf(stderr, "usage: %s STORE ENGINE run STEPS THREADS | check\n", argv[0]);
        return 2;
    }
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.log_max = LOG_BYTES_MAX; /* homes are written while the steps go on */
    durum_store *store = durum_store_open_or_create(argv[1], &options);
    if (store == NULL) {
        complain("store");
        return 1;
    }
    int failed = argc == 4 ? check(store, argv[2])
                           : run_threads(store, argv[2], strtoull(argv[4], NULL, 10),
                                         (unsigned)atoi(argv[5]));
    if (durum_store_close(store) != DURUM_OK && !failed) {
        complain("close");
        failed = 1;
    }
    return failed;
}
