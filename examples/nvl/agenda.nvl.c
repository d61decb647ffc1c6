// An agenda in three versions, each of which makes anew what the one before has stored
// (docs/how-to/change-types.md): -DVERSION=1, 2 or 3. Each run adds a task and shows all.
#include <errno.h>
#include <nvl.h>
#include <stdio.h>
#include <string.h>

#ifndef VERSION
#define VERSION 3
#endif

struct task;

#if VERSION < 3
struct person {
    char name[16];
    long tasks;
    nvl struct task *latest;
};
#else
struct person {
    unsigned char initial;
    char name[16];
    nvl struct task *latest;
    int tasks;
};
#endif

#if VERSION == 1
struct task {
    int number;
    short minutes;
    nvl struct task *next;
    nvl struct person *nvl_wp worker;
    nvl int *estimate;
};
#else
struct task {
    nvl struct person *nvl_wp worker;
    nvl struct task *next;
    int priority;
    int id;
    long minutes;
};
#endif

struct agenda {
    nvl struct task *tasks;
    nvl struct person *people[2];
#if VERSION == 3
    double load;
#endif
};

#if VERSION == 2
static int migrate(const char *path) {
    struct nvl_migrated_field fields[] = {
        {.type = "task", .name = "id", .was = "number"},
        {.type = "task", .name = "priority", .value = "3"},
        {.type = "task", .name = "estimate", .forget = 1},
    };
    struct nvl_migration how = {
        .root = nvl_type(struct agenda),
        .fields = fields,
        .field_count = 3,
    };
    return nvl_migrate(path, &how, NULL);
}
#elif VERSION == 3
struct second_person {
    char name[16];
    long tasks;
    nvl struct task *latest;
};

static int renewed(const void *was, void *now, void *argument) {
    const struct second_person *old = was;
    struct person *made = now; // zeroed
    (void)argument;
    made->initial = (unsigned char)old->name[0];
    memcpy(made->name, old->name, sizeof made->name);
    made->tasks = (int)old->tasks;
    made->latest = old->latest; // follows to where it is then
    return 0;
}

static int migrate(const char *path) {
    struct nvl_migrated_type types[] = {{
        .name = "person",
        .was = nvl_type(struct second_person),
        .now = nvl_type(struct person),
        .make = renewed,
    }};
    struct nvl_migrated_field fields[] = {{.type = "agenda", .name = "load", .value = "0.5"}};
    struct nvl_migration how = {
        .root = nvl_type(struct agenda),
        .types = types,
        .type_count = 1,
        .fields = fields,
        .field_count = 1,
    };
    return nvl_migrate(path, &how, NULL);
}
#endif

#if VERSION == 1
static nvl_heap_t *opened(const char *path) {
    nvl_heap_t *heap = nvl_open(path);
    return !heap && errno == ENOENT ? nvl_create(path) : heap;
}
#else
static nvl_heap_t *opened(const char *path) {
    nvl_heap_t *heap = nvl_open(path);
    if (!heap && errno == ENOENT)
        heap = nvl_create(path);
    if (heap && !nvl_root_is(heap, struct agenda)) {
        nvl_close(heap);
        return migrate(path) == 0 ? nvl_open(path) : NULL;
    }
    return heap;
}
#endif

static nvl struct agenda *agenda_of(nvl_heap_t *heap) {
    nvl struct agenda *agenda = nvl_get_root(heap, struct agenda);
    if (agenda)
        return agenda;
    agenda = nvl_alloc_nv(heap, 1, struct agenda);
    static const char names[2][16] = {"Ada", "Grace"};
    for (int i = 0; i < 2; i++) {
        agenda->people[i] = nvl_alloc_nv(heap, 1, struct person);
        memcpy(agenda->people[i]->name, names[i], sizeof names[i]);
    }
    nvl_set_root(heap, agenda);
    return agenda;
}

static void add(nvl_heap_t *heap, nvl struct agenda *agenda) {
    int number = agenda->tasks ?
#if VERSION == 1
                               agenda->tasks->number
#else
                               agenda->tasks->id
#endif
                                   + 1
                               : 0;
    nvl struct person *worker = agenda->people[number % 2];
    nvl struct task *task = nvl_alloc_nv(heap, 1, struct task);
#pragma nvl atomic heap(heap)
    {
#if VERSION == 1
        task->number = number;
        task->estimate = nvl_alloc_nv(heap, 4, int);
#else
        task->id = number;
        task->priority = 1;
#endif
        task->minutes = 30;
        task->worker = worker;
        task->next = agenda->tasks;
        agenda->tasks = task;
        worker->latest = task;
        worker->tasks++;
    }
}

static void show(nvl struct agenda *agenda) {
    for (nvl struct task *task = agenda->tasks; task; task = task->next) {
        nvl struct person *worker = task->worker;
        char name[16];
        memcpy(name, worker->name, sizeof name);
#if VERSION == 1
        printf("task %d: %d min, %s", task->number, task->minutes, name);
#else
        printf("task %d: priority %d, %ld min, %s", task->id, task->priority, task->minutes, name);
#endif
        printf("%s\n", worker->latest == task ? ", the latest" : "");
    }
    for (int i = 0; i < 2; i++) {
        nvl struct person *person = agenda->people[i];
        char name[16];
        memcpy(name, person->name, sizeof name);
#if VERSION == 3
        printf("%c: ", person->initial);
#endif
        printf("%s has %ld\n", name, (long)person->tasks);
    }
#if VERSION == 3
    printf("load %.1f\n", agenda->load);
#endif
}

int main(int argc, char **argv) {
    nvl_heap_t *heap = opened(argc > 1 ? argv[1] : "agenda.heap");
    if (!heap) {
        fprintf(stderr, "%s\n", nvl_error());
        return 1;
    }
    nvl struct agenda *agenda = agenda_of(heap);
    add(heap, agenda);
    show(agenda);
    nvl_close(heap);
    return 0;
}
