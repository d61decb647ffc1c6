/* The text protocol: what the lines and values of a client ask for, and what is answered. */
#pragma once
#include "cache.h"
#include "reply.h"

enum { PROTOCOL_LINE_SIZE_MAX = 8192 };

struct settings {
    size_t bytes_max;
    unsigned threads;
    time_t started;
};
extern struct settings protocol_settings; /* set before the first thread begins */

/* What is known of a client between two commands. */
struct session {
    struct reply reply;
    struct item *item; /* the next bytes are its value; NULL: they are a line */
    enum storing how;
    uint64_t cas;
    uint64_t skip; /* bytes of a value that was refused */
    bool is_quiet; /* the command wants no reply */
    bool ends;
};

/* A line without its end, which is no part of a value. */
void protocol_line(struct session *session, const char *line, size_t size);

/* A line that has more than PROTOCOL_LINE_SIZE_MAX bytes. */
void protocol_long_line(struct session *session);

/* The value of session->item has been read, with the two bytes behind it. */
void protocol_value(struct session *session);

void protocol_end(struct session *session);
