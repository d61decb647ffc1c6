/* Words and numbers of a command's line. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct word {
    const char *text;
    size_t size;
};

/* Takes the next word off the text; false if there is none. */
bool text_word(const char **text, const char *end, struct word *word);

bool text_is(struct word word, const char *name);

/* False if the word is anything but a number of that type, in decimal digits. */
bool text_unsigned(struct word word, uint64_t max, uint64_t *number);
bool text_signed(struct word word, int64_t *number);
