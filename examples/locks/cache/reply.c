#define _GNU_SOURCE
#include "reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "cache.h"
#include "stats.h"

enum {
    PIECES_PER_CALL = 64,
    PIECES_FULL = 256,
    LINE_SIZE_MAX = 512,
    TEXT_KEPT_MAX = 1 << 16, /* memory that one long answer has needed is not kept for short ones */
};

static bool grow(void **memory, size_t *room, size_t needed, size_t element_size) {
    if (needed <= *room)
        return true;
    size_t larger = *room ? 2 * *room : 64;
    if (larger < needed)
        larger = needed;
    void *grown = realloc(*memory, larger * element_size);
    if (!grown)
        return false;
    *memory = grown;
    *room = larger;
    return true;
}

static bool add(struct reply *reply, struct piece piece) {
    void *pieces = reply->pieces;
    if (!grow(&pieces, &reply->room, reply->count + 1, sizeof piece)) {
        reply->failed = true;
        return false;
    }
    reply->pieces = pieces;
    reply->pieces[reply->count++] = piece;
    return true;
}

static void add_text(struct reply *reply, const char *text, size_t size) {
    void *grown = reply->text;
    if (!grow(&grown, &reply->text_room, reply->text_size + size, 1)) {
        reply->failed = true;
        return;
    }
    reply->text = grown;
    memcpy(reply->text + reply->text_size, text, size);
    struct piece *last = reply->count > reply->sent ? &reply->pieces[reply->count - 1] : NULL;
    if (last && !last->bytes)
        last->size += size;
    else if (!add(reply, (struct piece){.start = reply->text_size, .size = size}))
        return;
    reply->text_size += size;
}

void reply_text(struct reply *reply, const char *text) {
    add_text(reply, text, strlen(text));
}

void reply_print(struct reply *reply, const char *format, ...) {
    char line[LINE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof line)
        reply->failed = true;
    else
        add_text(reply, line, (size_t)size);
}

void reply_bytes(struct reply *reply, const char *bytes, size_t size, struct item *release) {
    if (!add(reply, (struct piece){.bytes = bytes, .size = size, .release = release}) && release)
        cache_release(release);
}

bool reply_is_full(const struct reply *reply) {
    return reply->failed || reply->count >= PIECES_FULL;
}

static void drop(struct reply *reply, size_t sent) {
    while (reply->sent < reply->count) {
        struct piece *piece = &reply->pieces[reply->sent];
        if (sent < piece->size) {
            if (piece->bytes)
                piece->bytes += sent;
            else
                piece->start += sent;
            piece->size -= sent;
            return;
        }
        sent -= piece->size;
        if (piece->release)
            cache_release(piece->release);
        reply->sent++;
    }
}

enum sending reply_send(struct reply *reply, int socket) {
    while (!reply->failed && reply->sent < reply->count) {
        struct iovec vectors[PIECES_PER_CALL];
        struct msghdr message = {.msg_iov = vectors};
        for (size_t i = reply->sent; i < reply->count && message.msg_iovlen < PIECES_PER_CALL;
             i++) {
            const struct piece *piece = &reply->pieces[i];
            vectors[message.msg_iovlen++] = (struct iovec){
                .iov_base = piece->bytes ? (char *)piece->bytes : reply->text + piece->start,
                .iov_len = piece->size,
            };
        }
        /* Without a signal: a client that has gone is nothing special. */
        ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? SENDING_WAITS : SENDING_FAILED;
        stats_add(STATS_bytes_written, (uint64_t)sent);
        drop(reply, (size_t)sent);
    }
    if (reply->failed)
        return SENDING_FAILED;
    if (reply->text_room > TEXT_KEPT_MAX || reply->room > PIECES_FULL * 4)
        reply_end(reply);
    reply->text_size = reply->count = reply->sent = 0;
    return SENT;
}

void reply_end(struct reply *reply) {
    for (size_t i = reply->sent; i < reply->count; i++)
        if (reply->pieces[i].release)
            cache_release(reply->pieces[i].release);
    free(reply->pieces);
    free(reply->text);
    *reply = (struct reply){0};
}
