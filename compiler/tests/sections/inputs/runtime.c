/* A fence for each record, and one more for the stores in front that it does not tell of. docs/reference/ido-ir.md has the
 * functions. */
#define _GNU_SOURCE
#include "contract.h"
#include "runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Behind so many bytes of the stack, a call is recorded before it lies above what the last record needs. */
enum { STATES = 1024, NEAR = 512, BESIDE = 4096 };

/* The first members are what compiled code looks at. */
struct thread {
    int32_t depth, is_resuming;
    uint64_t store_begin, store_size;
    uint32_t region;
    const void *words, *result;
    struct slot *slot;
    char *stack;
    struct frame *frame;
    uint64_t sequence;
    const void *locks[LOCKS_MAX];
    const void *releasing;
    int is_published, is_stale, is_word;
    /* Others may store where the section has stored. */
    int hands_over;
    struct stores stores;
    /* How far the stack is durable, and how far the record needs it. */
    char *durable, *recorded;
    int dirty_count;
    uintptr_t dirty[4096];
    int written_back_count;
    uintptr_t written_back[8192];
    struct blocks blocks;
};

static _Thread_local struct thread *current;
extern char __executable_start[], __data_start[];
long fences;
static struct thread all_threads[THREADS_MAX];
static int thread_count;
static pthread_mutex_t turn = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* It is durable when the thread has passed a fence. */
static void write_back(struct thread *thread, const void *start, size_t size) {
    for (uintptr_t line = (uintptr_t)start & -LINE; line < (uintptr_t)start + size; line += LINE)
        thread->written_back[thread->written_back_count++] = line;
}
static void fence(struct thread *thread) {
    fences++;
    event();
    for (int i = 0; i < thread->written_back_count; i++)
        memcpy((char *)image + (thread->written_back[i] - BASE), (void *)thread->written_back[i], LINE);
    thread->written_back_count = 0;
    event();
}

struct thread *__durum_ido_thread(void) {
    if (!current) {
        pthread_mutex_lock(&turn);
        current = &all_threads[thread_count];
        current->store_begin = BASE, current->store_size = sizeof *memory;
        current->slot = &memory->slots[thread_count++];
        current->stack = current->durable = current->slot->stack;
        pthread_mutex_unlock(&turn);
    }
    return current;
}

/* Sections that have recorded something and have not ended. */
static int under_way;

static void add_lines(struct thread *thread, const void *start, size_t size) {
    for (uintptr_t line = (uintptr_t)start & -LINE; line < (uintptr_t)start + size; line += LINE) {
        int i = 0;
        while (i < thread->dirty_count && thread->dirty[i] != line)
            i++;
        if (i == thread->dirty_count)
            thread->dirty[thread->dirty_count++] = line;
    }
}

void wrote(struct thread *thread, const void *start, size_t size) {
    if (!thread)
        return;
    give_up(&thread->stores);
    add_lines(thread, start, size);
}

void __durum_ido_wrote(struct thread *thread, const void *start, uint64_t size) {
    if (!thread->depth || !is_durable(start) || size == 0)
        return;
    if (!thread->is_word && (!thread->is_published || thread->is_stale))
        fail("a store has no record of its own");
    add_lines(thread, start, size);
    /* Recovery stores to nobody's stack. */
    if ((uintptr_t)start < (uintptr_t)memory->slots)
        note_stored(&thread->stores, start, size);
    else
        give_up(&thread->stores);
    event();
}

static int write_stores_back(struct thread *thread) {
    int count = thread->dirty_count;
    for (int i = 0; i < count; i++)
        write_back(thread, (void *)thread->dirty[i], LINE);
    thread->dirty_count = 0;
    thread->stores.count = 0;
    return count > 0;
}

static void make_stores_durable(struct thread *thread, int needs_stack) {
    int is_any = write_stores_back(thread);
    if (needs_stack && thread->durable < thread->stack && strcmp(fault, "locals")) {
        write_back(thread, thread->durable, thread->stack - thread->durable);
        is_any = 1;
    }
    if (needs_stack)
        thread->durable = thread->stack;
    /* Without this fence a record may be there before what it builds on. */
    if (is_any && strcmp(fault, "fence"))
        fence(thread);
}

static uint64_t checksum(const struct bank *bank) {
    uint64_t sum = 0x9e3779b97f4a7c15;
    const unsigned char *bytes = (const unsigned char *)bank;
    size_t size = offsetof(struct bank, word) + 8 * (size_t)(bank->words <= WORDS_MAX ? bank->words : 0);
    for (size_t i = sizeof bank->checksum; i < size; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3;
    return sum;
}

static struct bank *next_bank(struct thread *thread) { return &thread->slot->banks[(thread->sequence + 1) % 2]; }

static void finish(struct thread *thread, uint64_t code, uint32_t words) {
    struct bank *bank = next_bank(thread);
    bank->sequence = ++thread->sequence;
    bank->code = code;
    bank->words = words;
    bank->stack = thread->stack - thread->slot->stack;
    bank->frame = thread->frame ? (char *)thread->frame - thread->slot->stack + 1 : 0;
    bank->locks = 0;
    tell_stored(&thread->stores, bank);
    for (int i = 0; i < thread->depth && code; i++)
        if (thread->locks[i] != thread->releasing)
            bank->lock[bank->locks++] = name_of(thread->locks[i]);
    tell_blocks(&thread->blocks, bank);
    event();
    bank->checksum = checksum(bank);
    event();
    write_stores_back(thread);
    write_back(thread, bank, offsetof(struct bank, word) + 8 * words);
    fence(thread);
}

/* Whether the region needs any, or one of a caller's. A pointer may lie beside what it is used for. */
static int leads_to_locals(const struct thread *thread, const struct region *region, const uint64_t *words) {
    const uint64_t begin = (uint64_t)thread->slot->stack - BESIDE;
    int is_any = (region->flags & NEEDS_LOCALS) != 0;
    for (int i = 0; i < region->words; i++)
        is_any |= words[i] - begin < STACK + 2 * BESIDE;
    return is_any;
}

static void record(struct thread *thread, const struct region *region, const void *words, const void *releasing) {
    int is_hidden = !((thread->hands_over | region->flags) & HANDS_OVER) || !strcmp(fault, "handed");
    /* Frames have no checksums here. */
    int needs_stack = thread->frame || leads_to_locals(thread, region, words);
    int is_told = is_hidden && !(needs_stack && thread->durable < thread->stack) && is_all(&thread->stores);
    thread->hands_over = region->flags;
    if (!is_told)
        make_stores_durable(thread, needs_stack);
    thread->releasing = releasing;
    memcpy(next_bank(thread)->word, words, 8 * region->words);
    make_relative(region, next_bank(thread)->word);
    finish(thread, region->code, region->words);
    set_taken(thread, &thread->blocks);
    if (!thread->is_published)
        __atomic_fetch_add(&under_way, 1, __ATOMIC_SEQ_CST);
    thread->is_published = 1;
    thread->is_stale = 0;
    thread->recorded = thread->stack;
}

void __durum_ido_record(struct thread *thread, const struct region *region, const void *words) {
    if (thread->depth)
        record(thread, region, words, NULL);
}
void __durum_ido_record_word(struct thread *thread, const struct region *region, const void *words) {
    int is_untold = thread->blocks.taken_count || thread->blocks.freed_count > thread->blocks.ended_count;
    thread->is_word = thread->depth == 1 && !thread->is_published && !is_untold;
    if (thread->depth && !thread->is_word)
        record(thread, region, words, NULL);
}
void __durum_ido_record_release(struct thread *thread, const struct region *region, const void *words,
                                const void *lock) {
    if (thread->depth > 1 && thread->is_published)
        record(thread, region, words, lock);
}

static void use_stack(struct thread *thread, size_t size) {
    if (thread->durable > thread->stack)
        thread->durable = thread->stack;
    thread->stack += size;
    if (thread->stack > thread->slot->stack + STACK)
        fail("the stack is full");
}

/* The call would overwrite frames that the last record leads to. */
static int is_needed(const struct thread *thread) {
    return thread->depth && thread->is_published && thread->recorded > thread->stack && strcmp(fault, "frames");
}

void *__durum_ido_call(struct thread *thread, const struct region *call, const struct region *region,
                       const void *words) {
    if (call && is_needed(thread) && thread->recorded > thread->slot->stack + NEAR)
        record(thread, call, words, NULL);
    if (!thread->depth && !(region->flags & BEGINS_SECTION))
        return NULL;
    uint64_t free = thread->stack - thread->slot->stack;
    if (is_needed(thread))
        thread->stack = thread->recorded;
    struct frame *frame = (struct frame *)thread->stack;
    use_stack(thread, (sizeof *frame + 8 * region->words + LINE - 1) & -LINE);
    memcpy(frame->word, words, 8 * region->words);
    make_relative(region, frame->word);
    frame->free = free;
    frame->code = region->code;
    frame->words = region->words;
    frame->before = thread->frame ? (char *)thread->frame - thread->slot->stack + 1 : 0;
    thread->frame = frame;
    event();
    return frame;
}

uint32_t __durum_ido_enter(struct thread *thread, const struct region *regions, void *words) {
    uint32_t region = thread->region;
    memcpy(words, thread->words, 8 * regions[region - 1].words);
    thread->region = 0;
    return region;
}

static void pop(struct thread *thread, struct frame *frame) {
    thread->stack = thread->slot->stack + frame->free;
    thread->frame = frame->before ? (struct frame *)(thread->slot->stack + frame->before - 1) : NULL;
}
void __durum_ido_returned(struct thread *thread, void *frame) {
    if (!frame)
        return;
    pop(thread, frame);
    thread->is_stale = 1;
}

void *__durum_ido_locals(struct thread *thread, uint64_t size) {
    void *place = thread->stack;
    use_stack(thread, (size + LINE - 1) & -LINE);
    return place;
}
void *__durum_ido_other_locals(struct thread *thread, uint64_t size) { return __durum_ido_locals(thread, size); }
void __durum_ido_copy_argument(void *place, const void *argument, uint64_t size) { memcpy(place, argument, size); }
void __durum_ido_leave(struct thread *thread, void *base) { thread->stack = base; }

static void refuse(const struct place *place) {
    fprintf(stderr, "%s:%lu: in %s: %s%s%s\n", place->file, place->line, place->function,
            place->subject ? place->subject : "", place->subject ? ": " : "", place->refusal);
    exit(3);
}
void __durum_ido_refused(struct thread *thread, const struct place *place) {
    if (thread->depth)
        refuse(place);
}

/* Of who resumes, the memory is another one. */
void *__durum_ido_written_elsewhere(struct thread *thread, void *object) {
    static _Thread_local char nowhere[128 * 1024];
    return thread->is_resuming && thread->depth ? nowhere + sizeof nowhere / 2 : object;
}
void __durum_ido_read_elsewhere(struct thread *thread, const void *object, const struct place *place) {
    int is_constant = (char *)object >= __executable_start && (char *)object < __data_start;
    if (thread->depth && thread->is_published && !is_constant)
        refuse(place);
}
void __durum_ido_check_call(struct thread *thread, const void *symbol, const struct place *place) {
    if (thread->depth && !symbol)
        refuse(place);
}
void __durum_ido_check_pointer(struct thread *thread, const void *function, const struct place *place) {
    if (thread->depth && ((const uint64_t *)function)[-1] != 0x6f64692e6d757264)
        refuse(place);
}

/* Locks, whose states are elsewhere. */
static pthread_mutex_t *state_of(const void *lock) {
    static struct {
        const void *lock;
        pthread_mutex_t mutex;
    } states[STATES];
    pthread_mutex_lock(&turn);
    size_t i = (uintptr_t)lock / 8 % STATES;
    while (states[i].lock && states[i].lock != lock)
        i = (i + 1) % STATES;
    if (!states[i].lock) {
        states[i].lock = lock;
        pthread_mutex_init(&states[i].mutex, NULL);
    }
    pthread_mutex_unlock(&turn);
    return &states[i].mutex;
}

static void begin_section(struct thread *thread) {
    /* What was written outside is not durable. */
    thread->durable = thread->slot->stack;
    thread->is_published = thread->hands_over = 0;
}

static void taken(struct thread *thread, const void *lock) {
    if (!thread->depth)
        begin_section(thread);
    thread->locks[thread->depth++] = lock;
    thread->is_stale = 1;
    event();
}

int __durum_ido_pthread_mutex_lock(pthread_mutex_t *lock) {
    pthread_mutex_lock(state_of(lock));
    taken(__durum_ido_thread(), lock);
    return 0;
}
int __durum_ido_pthread_mutex_trylock(pthread_mutex_t *lock) {
    if (pthread_mutex_trylock(state_of(lock)))
        return EBUSY;
    taken(__durum_ido_thread(), lock);
    return 0;
}
/* What it has taken is taken, whoever is told of it. */
static void settle(struct thread *thread) {
    if (thread->blocks.taken_count) {
        set_taken(thread, &thread->blocks);
        make_stores_durable(thread, 0);
    }
}
/* It is in no section, and what it has freed is free, or will be. */
static void idle(struct thread *thread) {
    if (__atomic_load_n(&under_way, __ATOMIC_SEQ_CST) == thread->is_published || !strcmp(fault, "wait"))
        clear_freed(thread, &thread->blocks);
    make_stores_durable(thread, 0);
    thread->releasing = NULL;
    finish(thread, 0, 0);
    end_blocks(&thread->blocks);
}
/* Whose last lock is let go. */
static void end_section(struct thread *thread) {
    settle(thread);
    if (thread->is_word)
        make_stores_durable(thread, 0);
    thread->is_word = 0;
    if (thread->depth == 1 && thread->is_published) {
        idle(thread);
        __atomic_fetch_sub(&under_way, 1, __ATOMIC_SEQ_CST);
        thread->is_published = 0;
    }
}
static void forget(struct thread *thread, int lock) {
    memmove(&thread->locks[lock], &thread->locks[lock + 1], (thread->depth - lock - 1) * sizeof *thread->locks);
    thread->depth--;
    thread->is_stale = 1;
}

int __durum_ido_pthread_mutex_unlock(pthread_mutex_t *lock) {
    struct thread *thread = __durum_ido_thread();
    int i = thread->depth - 1;
    while (i >= 0 && thread->locks[i] != lock)
        i--;
    /* A record that lets the lock go may be what a section goes on from. */
    if (i < 0 && thread->is_resuming)
        return 0;
    if (i < 0)
        fail("a lock is let go that is not held");
    end_section(thread);
    if (thread->depth > 1 && thread->is_published && thread->releasing != lock) {
        fail("a lock is let go without a record");
    }
    forget(thread, i);
    event();
    pthread_mutex_unlock(state_of(lock));
    return 0;
}

/* The plain program's, which has no sections. */
void durum_durable_begin(void) {}
void durum_durable_end(void) {}

void __durum_ido_durum_durable_begin(void) { taken(__durum_ido_thread(), &unguarded); }

void __durum_ido_durum_durable_end(void) {
    struct thread *thread = __durum_ido_thread();
    int i = thread->depth - 1;
    while (i >= 0 && thread->locks[i] != &unguarded)
        i--;
    if (i < 0)
        fail("no region is open");
    end_section(thread);
    forget(thread, i);
    event();
}

void *nv_malloc(size_t size) {
    struct thread *thread = __durum_ido_thread();
    void *made = take_block(&thread->blocks, size);
    if (!thread->depth)
        settle(thread);
    thread->is_stale = 1;
    return made;
}
/* Blocks have no types. */
void *__durum_ido_typed_malloc(size_t size, const void *type) {
    (void)type;
    return nv_malloc(size);
}
void nv_free(void *object) {
    struct thread *thread = __durum_ido_thread();
    if (!object)
        return;
    free_block(&thread->blocks, object);
    if (!thread->depth)
        idle(thread);
    thread->is_stale = 1;
}

/* After a crash. */
static void resume(uint64_t code, uint64_t *words, void *result) {
    const struct function *function = function_of(code);
    make_absolute(&function->regions[(code & 0xffff) - 1], words);
    function->resume(words, code & 0xffff, result, function->code);
}

static int is_valid(const struct bank *bank) {
    return bank->sequence && bank->words <= WORDS_MAX && bank->locks <= LOCKS_MAX && bank->checksum == checksum(bank);
}

static pthread_barrier_t all_locked;

static void *go_on(void *argument) {
    struct thread *thread = current = argument;
    struct bank *banks = thread->slot->banks;
    struct bank bank = banks[thread->sequence % 2];
    for (uint32_t i = 0; i < bank.locks; i++) {
        thread->locks[i] = lock_named(bank.lock[i]);
        if (thread->locks[i] != &unguarded && pthread_mutex_trylock(state_of(thread->locks[i])))
            fail("two sections hold one lock");
    }
    thread->store_begin = BASE, thread->store_size = sizeof *memory;
    thread->depth = bank.locks;
    thread->stack = thread->durable = thread->recorded = thread->slot->stack + bank.stack;
    thread->frame = bank.frame ? (struct frame *)(thread->slot->stack + bank.frame - 1) : NULL;
    thread->is_published = thread->is_resuming = 1;
    __atomic_fetch_add(&under_way, 1, __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&all_locked);
    uint64_t result[64];
    resume(bank.code, bank.word, result);
    while (thread->depth) {
        struct frame *frame = thread->frame;
        if (!frame)
            fail("a section does not end");
        uint64_t code = frame->code, words[WORDS_MAX];
        memcpy(words, frame->word, 8 * frame->words);
        pop(thread, frame);
        thread->is_stale = 1;
        resume(code, words, result);
    }
    thread->is_resuming = 0;
    return NULL;
}

void complete(void) {
    pthread_t running[THREADS_MAX];
    int count = 0;
    for (int i = 0; i < THREADS_MAX; i++) {
        struct bank *banks = memory->slots[i].banks;
        const struct bank *last = NULL;
        for (int j = 0; j < 2; j++)
            if (is_valid(&banks[j]) && (!last || last->sequence < banks[j].sequence))
                last = &banks[j];
        if (!last)
            continue;
        all_threads[i].slot = &memory->slots[i];
        all_threads[i].sequence = last->sequence;
        store_again(&last->stores);
        recover_blocks(last, &all_threads[i].blocks);
        count += last->code != 0;
    }
    look_at_blocks();
    pthread_barrier_init(&all_locked, NULL, count ? count : 1);
    int started = 0;
    for (int i = 0; i < THREADS_MAX; i++)
        if (all_threads[i].slot && memory->slots[i].banks[all_threads[i].sequence % 2].code)
            pthread_create(&running[started++], NULL, go_on, &all_threads[i]);
    for (int i = 0; i < started; i++)
        pthread_join(running[i], NULL);
    for (int i = 0; i < THREADS_MAX; i++)
        clear_recovered(&all_threads[i].blocks);
    thread_count = 0;
}
