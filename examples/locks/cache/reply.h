/* What a connection has to send: own text, and parts of items, which are sent from where they are.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct item;

struct piece {
    const char *bytes;    /* NULL: of the reply's text, which may move */
    size_t start, size;   /* start: in the text */
    struct item *release; /* given back when the piece has been sent; may be NULL */
};

struct reply {
    char *text;
    struct piece *pieces;
    size_t text_size, text_room;
    size_t count, room, sent; /* pieces; those before `sent` are gone */
    bool failed; /* there was no memory: something is missing, so the connection has to end */
};

void reply_text(struct reply *reply, const char *text);
__attribute__((format(printf, 2, 3))) void reply_print(struct reply *reply, const char *format,
                                                       ...);

/* Takes over the caller's reference. A NULL for `release` is for parts of an item of which another
 * one follows. */
void reply_bytes(struct reply *reply, const char *bytes, size_t size, struct item *release);

/* So much waits that it should be sent before anything else is answered. */
bool reply_is_full(const struct reply *reply);

enum sending { SENT, SENDING_WAITS, SENDING_FAILED };
enum sending reply_send(struct reply *reply, int socket);

/* Forgets what has not been sent, and frees all memory. */
void reply_end(struct reply *reply);
