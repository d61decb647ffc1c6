/* What the programs share: numbers from the command line, pseudo-random numbers, a sum over data.
 */
#ifndef RUN_H
#define RUN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The argument `at`, or `otherwise` if it is not there. Ends the program if it is no positive
 * number. */
static inline long argument(int argc, char **argv, int at, long otherwise) {
    char *end;
    long value;
    if (at >= argc)
        return otherwise;
    value = strtol(argv[at], &end, 10);
    if (*end != '\0' || value <= 0 || value > 1 << 30) {
        fprintf(stderr, "%s: %s is no positive number\n", argv[0], argv[at]);
        exit(2);
    }
    return value;
}

/* SplitMix64: the same number for the same index, so that a run that goes on needs no state. */
static inline uint64_t random_at(uint64_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The same in [0, 1). */
static inline double fraction_at(uint64_t index) {
    return (double)(random_at(index) >> 11) * 0x1p-53;
}

#endif
