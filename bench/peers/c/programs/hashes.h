/* By FNV-1a, as the programs of examples/rust hash texts. */
#ifndef DURUM_BENCH_HASHES_H
#define DURUM_BENCH_HASHES_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_of(const char *text, size_t len) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
