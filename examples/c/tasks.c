/* A queue of tasks in four versions, each of which goes on with what the one before has stored
 * (docs/how-to/change-types.md): -DVERSION=1, 2, 3 or 4. Each run adds a task and shows all. */
#include <durum.h>
#include <stdio.h>

#ifndef VERSION
#define VERSION 4
#endif

#if VERSION == 1
typedef struct task {
    uint64_t number;
    struct task *next;
    uint64_t tries;
    char later[16]; /* zero */
} task;
DURUM_TYPE(task, DURUM_FIELD(number), DURUM_PTR(next), DURUM_FIELD(tries), DURUM_RESERVED(later))
#elif VERSION == 2
typedef struct task {
    uint64_t number;
    struct task *next;
    uint64_t attempts;
    uint64_t deadline;
    char later[8];
} task;
DURUM_TYPE(task, DURUM_FIELD(number), DURUM_PTR(next), DURUM_FIELD(attempts),
           DURUM_WAS(attempts, "tries"), DURUM_FIELD(deadline), DURUM_IN_RESERVED(deadline),
           DURUM_RESERVED(later))
#elif VERSION == 3
typedef struct task {
    uint64_t number;
    struct task *next;
    uint64_t attempts;
    uint64_t deadline;
    struct task *after;
} task;
DURUM_TYPE_AS(task, "job", DURUM_TYPE_WAS("task"), DURUM_FIELD(number), DURUM_PTR(next),
              DURUM_FIELD(attempts), DURUM_WAS(attempts, "tries"), DURUM_FIELD(deadline),
              DURUM_IN_RESERVED(deadline), DURUM_PTR(after), DURUM_IN_RESERVED(after))
#else
typedef struct task {
    uint64_t number;
    uint32_t attempts;
    uint32_t priority;
    uint64_t deadline;
    struct task *next;
    struct task *after;
} task;
DURUM_TYPE_AS(task, "job", DURUM_FIELD(number), DURUM_FIELD(attempts), DURUM_FIELD(priority),
              DURUM_FIELD(deadline), DURUM_PTR(next), DURUM_PTR(after))

/* As it was. */
typedef struct old_task {
    uint64_t number;
    struct old_task *next;
    uint64_t attempts;
    uint64_t deadline;
    struct old_task *after;
} old_task;
DURUM_TYPE_AS(old_task, "job", DURUM_TYPE_WAS("task"), DURUM_FIELD(number), DURUM_PTR(next),
              DURUM_FIELD(attempts), DURUM_WAS(attempts, "tries"), DURUM_FIELD(deadline),
              DURUM_IN_RESERVED(deadline), DURUM_PTR(after), DURUM_IN_RESERVED(after))

static int renewed(const void *was, void *now, void *argument) {
    const old_task *old = (const old_task *)was;
    task *made = (task *)now; /* zeroed */
    (void)argument;
    made->number = old->number;
    made->attempts = (uint32_t)old->attempts;
    made->priority = old->attempts > 10 ? 2 : 1;
    made->deadline = old->deadline;
    made->next = (task *)old->next; /* follows to where it is then */
    made->after = (task *)old->after;
    return 0;
}
#endif

typedef struct queue {
    task *first;
    uint64_t count;
} queue;
DURUM_TYPE(queue, DURUM_PTR_TO(first, task), DURUM_FIELD(count))

#if VERSION == 4
/* Makes the pool of version 3 anew. */
static int migrate(const char *path) {
    durum_migrated_type tasks = {DURUM_TYPE_OF(old_task), DURUM_TYPE_OF(task), renewed, NULL};
    return durum_pool_migrate(path, "tasks", DURUM_TYPE_OF(queue), &tasks, 1, 0);
}
#endif

static void add(durum_pool *pool, queue *all) {
    DURUM_TX_BEGIN(pool) {
        task *made = DURUM_TX_NEW(pool, task); /* zeroed */
        DURUM_TX_ADD(all);
        made->number = ++all->count;
        made->next = all->first;
#if VERSION == 1
        made->tries = 10;
#else
        made->attempts = 20;
        made->deadline = 100 * made->number;
#endif
#if VERSION == 4
        made->priority = 3;
#endif
#if VERSION >= 3
        made->after = all->first;
#endif
        all->first = made;
    }
    DURUM_TX_END
}

static void show(const task *it) {
    printf("task %llu", (unsigned long long)it->number);
#if VERSION == 1
    printf(", %llu tries", (unsigned long long)it->tries);
#else
    printf(", %llu attempts", (unsigned long long)it->attempts);
    if (it->deadline != 0)
        printf(", until %llu", (unsigned long long)it->deadline);
#endif
#if VERSION == 4
    printf(", priority %u", it->priority);
#endif
#if VERSION >= 3
    if (it->after != NULL)
        printf(", after %llu", (unsigned long long)it->after->number);
#endif
    printf("\n");
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "tasks.store";
    durum_store *store = durum_store_open_or_create(path, NULL);
    durum_pool *pool = durum_pool_open_or_create(store, "tasks", NULL);
    queue *all = DURUM_ROOT(pool, queue);

#if VERSION == 4
    if (all == NULL && durum_errorcode() == DURUM_E_ROOT_TYPE) {
        durum_pool_close(pool);
        durum_store_close(store);
        if (migrate(path) != DURUM_OK) {
            fprintf(stderr, "tasks: %s\n", durum_errormsg());
            return 1;
        }
        store = durum_store_open(path, NULL);
        pool = durum_pool_open(store, "tasks", NULL);
        all = DURUM_ROOT(pool, queue);
    }
#endif
    if (all != NULL)
        add(pool, all);
    int failed = durum_errorcode();
    if (failed)
        fprintf(stderr, "tasks: %s\n", durum_errormsg());
    else
        for (const task *it = all->first; it != NULL; it = it->next)
            show(it);
    durum_pool_close(pool);
    durum_store_close(store);
    return failed ? 1 : 0;
}
