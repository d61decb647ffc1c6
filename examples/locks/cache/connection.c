#include "connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "stats.h"

enum { READS_PER_TURN = 16 }; /* then it is another client's turn */

struct connection *connection_begin(int socket) {
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    connection->socket = socket;
    stats_add(STATS_curr_connections, 1);
    stats_add(STATS_total_connections, 1);
    return connection;
}

void connection_end(struct connection *connection) {
    protocol_end(&connection->session);
    close(connection->socket);
    free(connection);
    stats_subtract(STATS_curr_connections, 1);
}

static size_t value_missing(const struct connection *connection) {
    return connection->session.item->value_size + LINE_END_SIZE - connection->value_bytes;
}

static void add_value_bytes(struct connection *connection, size_t size) {
    connection->value_bytes += size;
    if (value_missing(connection) > 0)
        return;
    connection->value_bytes = 0;
    protocol_value(&connection->session);
}

/* The begin of a value, which has come with its command. */
static void take_value(struct connection *connection, size_t available) {
    size_t size = value_missing(connection);
    if (size > available)
        size = available;
    memcpy(item_value(connection->session.item) + connection->value_bytes,
           connection->input + connection->start, size);
    connection->start += size;
    add_value_bytes(connection, size);
}

static bool take_line(struct connection *connection, size_t available) {
    char *line = connection->input + connection->start;
    char *end = memchr(line, '\n', available);
    if (!end) {
        if (available == sizeof connection->input && !connection->skips_line) {
            connection->skips_line = true;
            protocol_long_line(&connection->session);
        }
        if (connection->skips_line)
            connection->start = connection->end;
        return false;
    }
    connection->start += (size_t)(end - line) + 1;
    if (connection->skips_line) {
        connection->skips_line = false;
        return true;
    }
    if (end > line && end[-1] == '\r')
        end--;
    protocol_line(&connection->session, line, (size_t)(end - line));
    return true;
}

/* False: more input is needed. */
static bool take(struct connection *connection) {
    struct session *session = &connection->session;
    size_t available = connection->end - connection->start;
    if (available == 0 || session->ends)
        return false;
    if (session->item) {
        take_value(connection, available);
    } else if (session->skip > 0) {
        size_t size = session->skip < available ? (size_t)session->skip : available;
        session->skip -= size;
        connection->start += size;
    } else {
        return take_line(connection, available);
    }
    return true;
}

enum receipt { RECEIVED, RECEIPT_WAITS, RECEIPT_END };

static enum receipt receive(struct connection *connection) {
    struct item *item = connection->session.item;
    size_t kept = connection->end - connection->start;
    char *place = connection->input + kept;
    size_t room = sizeof connection->input - kept;
    if (item) {
        /* The rest of a value goes where it will stay. Nobody else knows the item yet, so no lock
         * is needed. */
        place = item_value(item) + connection->value_bytes;
        room = value_missing(connection);
    } else {
        memmove(connection->input, connection->input + connection->start, kept);
        connection->start = 0;
        connection->end = kept;
    }
    ssize_t size;
    do
        size = read(connection->socket, place, room);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? RECEIPT_WAITS : RECEIPT_END;
    if (size == 0)
        return RECEIPT_END;
    stats_add(STATS_bytes_read, (uint64_t)size);
    if (item)
        add_value_bytes(connection, (size_t)size);
    else
        connection->end += (size_t)size;
    return RECEIVED;
}

enum wish connection_go_on(struct connection *connection) {
    struct reply *reply = &connection->session.reply;
    for (int reads = 0;;) {
        bool is_hungry = false;
        while (!is_hungry && !reply_is_full(reply))
            is_hungry = !take(connection);
        /* A client that reads no answers gets no further ones: so what waits for it stays small. */
        switch (reply_send(reply, connection->socket)) {
        case SENT:
            break;
        case SENDING_WAITS:
            return WISH_OUTPUT;
        case SENDING_FAILED:
            return WISH_END;
        }
        if (connection->session.ends)
            return WISH_END;
        if (!is_hungry)
            continue;
        if (reads++ == READS_PER_TURN)
            return WISH_INPUT;
        switch (receive(connection)) {
        case RECEIVED:
            break;
        case RECEIPT_WAITS:
            return WISH_INPUT;
        case RECEIPT_END:
            return WISH_END;
        }
    }
}
