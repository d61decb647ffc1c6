/* Pairs of an array of integers are swapped, some of them at once. What little there is besides
 * shows what a side takes for a section and for a word: no lock is taken, as one thread has it all.
 */
#include "kernel.h"

#define INTEGERS 10000
/* A power of two, so that any number of pairs can follow each other. */
#define PAIRS 32768

const struct row rows[] = {
    {"swap_1", 1}, {"swap_8", 1}, {"swap_64", 1}, {"swap_1024", 1}, {NULL, 0}};

static const long at_once[] = {1, 8, 64, 1024};

static uint64_t *integers;
static uint16_t pairs[PAIRS][2];

void set_up(long size) {
    (void)size;
    integers = memory_root(INTEGERS * sizeof *integers);
    for (uint64_t i = 0; i < PAIRS; i++) {
        pairs[i][0] = (uint16_t)(random_at(2 * i) % INTEGERS);
        pairs[i][1] = (uint16_t)(random_at(2 * i + 1) % INTEGERS);
    }
}

static void swap(const uint16_t *pair) {
    uint64_t *left = &integers[pair[0]], *right = &integers[pair[1]];
    uint64_t value = *left;
    SET(*left, *right);
    SET(*right, value);
}

void prepare(int row) {
    (void)row;
    for (long from = 0; from < INTEGERS; from += 1000) {
        BEGIN(NULL);
        for (long i = from; i < from + 1000; i++)
            SET(integers[i], (uint64_t)i);
        COMMIT();
    }
}

void run(int row, int thread, int threads, long operations) {
    (void)thread;
    (void)threads;
    const long count = at_once[row];
    for (long operation = 0; operation < operations; operation++) {
        BEGIN(NULL);
        for (long i = 0; i < count; i++)
            swap(pairs[(operation * count + i) % PAIRS]);
        COMMIT();
    }
}

uint64_t answer(int row) {
    (void)row;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < INTEGERS; i++)
        sum += random_at(integers[i] ^ i << 32);
    return sum;
}
