/* What a region has stored, for the next record to tell of. */
#include "runtime.h"

#include <string.h>

enum { WORD = 8 };

void note_stored(struct stores *stores, const void *start, size_t size) {
    for (uintptr_t place = (uintptr_t)start; place < (uintptr_t)start + size; place++) {
        uint64_t i = 0;
        while (i < stores->count && stores->word[i].place != (place & -WORD))
            i++;
        if (i >= STORED_MAX)
            return give_up(stores);
        if (i == stores->count) {
            memset(&stores->word[i], 0, sizeof stores->word[i]);
            stores->word[i].place = place & -WORD;
            stores->count++;
        }
        stores->word[i].is_stored[place % WORD] = 1;
    }
}

void give_up(struct stores *stores) { stores->count = STORED_MAX + 1; }

int is_all(const struct stores *stores) { return stores->count <= STORED_MAX; }

void tell_stored(const struct stores *stores, struct bank *bank) {
    bank->stores = *stores;
    bank->stores.count = strcmp(fault, "stored") ? stores->count : 0;
    for (uint64_t i = 0; i < bank->stores.count; i++)
        memcpy(&bank->stores.word[i].value, (void *)stores->word[i].place, WORD);
}

void store_again(const struct stores *stores) {
    for (uint64_t i = 0; i < stores->count; i++)
        for (int byte = 0; byte < WORD; byte++)
            if (stores->word[i].is_stored[byte]) {
                char *place = (char *)stores->word[i].place + byte;
                *place = ((const char *)&stores->word[i].value)[byte];
                ((char *)image)[(uintptr_t)place - BASE] = *place;
            }
}
