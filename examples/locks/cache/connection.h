/* A client's socket, and what has been read from it. Only the thread that made a connection uses
 * it. */
#pragma once
#include "protocol.h"

struct connection {
    struct connection *next, *previous; /* of the same thread */
    int socket;
    bool wants_output;
    bool skips_line;    /* the end of one that was too long */
    size_t start, end;  /* what has been read and not been looked at */
    size_t value_bytes; /* how much of the session's item is there */
    struct session session;
    char input[PROTOCOL_LINE_SIZE_MAX];
};

/* Takes over the socket; NULL: there is no memory. */
struct connection *connection_begin(int socket);
void connection_end(struct connection *connection);

enum wish { WISH_INPUT, WISH_OUTPUT, WISH_END };

/* Reads, does and answers what can be done without waiting, and says what to wait for. */
enum wish connection_go_on(struct connection *connection);
