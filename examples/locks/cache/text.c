#include "text.h"

#include <string.h>

bool text_word(const char **text, const char *end, struct word *word) {
    const char *start = *text;
    while (start < end && *start == ' ')
        start++;
    const char *stop = memchr(start, ' ', (size_t)(end - start));
    *text = stop ? stop : end;
    *word = (struct word){start, (size_t)(*text - start)};
    return word->size > 0;
}

bool text_is(struct word word, const char *name) {
    return word.size == strlen(name) && memcmp(word.text, name, word.size) == 0;
}

/* strtoull takes spaces, signs, and what has a number in front only. */
bool text_unsigned(struct word word, uint64_t max, uint64_t *number) {
    uint64_t value = 0;
    for (size_t i = 0; i < word.size; i++) {
        if (word.text[i] < '0' || word.text[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(word.text[i] - '0');
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *number = value;
    return word.size > 0 && value <= max;
}

bool text_signed(struct word word, int64_t *number) {
    bool is_negative = word.size > 0 && word.text[0] == '-';
    if (is_negative)
        word = (struct word){word.text + 1, word.size - 1};
    uint64_t size;
    if (!text_unsigned(word, INT64_MAX, &size))
        return false;
    *number = is_negative ? -(int64_t)size : (int64_t)size;
    return true;
}
