#define _GNU_SOURCE
#include "protocol.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "stats.h"
#include "text.h"

#define VERSION "1.0.0"

enum { WORDS_MAX = 7 }; /* of all commands but get and gets */

struct settings protocol_settings;

/* 1: errors are told on stderr, 2: commands, too. */
static atomic_uint verbosity;

struct command {
    const char *name;
    void (*run)(struct session *session, const struct word *words, size_t count,
                const struct command *command);
    size_t words_min, words_max; /* without the name and noreply */
    bool takes_noreply;
    int variant;
    const char *usage;
};

static void answer(struct session *session, const char *text) {
    if (!session->is_quiet)
        reply_text(&session->reply, text);
}

static void refuse(struct session *session, const char *text) {
    if (atomic_load_explicit(&verbosity, memory_order_relaxed) >= 1)
        fprintf(stderr, "> %s", text);
    answer(session, text);
}

static bool read_key(struct session *session, struct word word, struct key *key) {
    if (word.size > KEY_SIZE_MAX) {
        refuse(session, "CLIENT_ERROR the key is too long: use at most 250 bytes\r\n");
        return false;
    }
    for (size_t i = 0; i < word.size; i++)
        if ((unsigned char)word.text[i] < ' ' || word.text[i] == 127) {
            refuse(session, "CLIENT_ERROR the key has a control character: leave it out\r\n");
            return false;
        }
    *key = (struct key){word.text, word.size};
    return true;
}

static bool read_seconds(struct session *session, struct word word, int64_t *seconds) {
    if (text_signed(word, seconds))
        return true;
    refuse(session, "CLIENT_ERROR the time is no number: give seconds\r\n");
    return false;
}

static bool read_storing(struct session *session, const struct word *words, struct key *key,
                         uint64_t *flags, int64_t *seconds) {
    if (!read_key(session, words[0], key))
        return false;
    if (!text_unsigned(words[1], UINT32_MAX, flags)) {
        refuse(session, "CLIENT_ERROR the flags are no number from 0 to 4294967295\r\n");
        return false;
    }
    if (!read_seconds(session, words[2], seconds))
        return false;
    if (session->how == STORING_CAS && !text_unsigned(words[4], UINT64_MAX, &session->cas)) {
        refuse(session, "CLIENT_ERROR the last number is not one that 'gets' has told\r\n");
        return false;
    }
    return true;
}

static void run_storing(struct session *session, const struct word *words, size_t count,
                        const struct command *command) {
    (void)count;
    struct key key;
    uint64_t flags, size;
    int64_t seconds;
    session->how = (enum storing)command->variant;
    if (!text_unsigned(words[3], INT32_MAX, &size))
        return refuse(session, "CLIENT_ERROR the size of the value is no number of bytes\r\n");
    /* Whatever is wrong from here on, the value follows, and must not be read as commands. */
    session->skip = size + LINE_END_SIZE;
    if (!read_storing(session, words, &key, &flags, &seconds))
        return;
    switch (cache_allocate(key, (uint32_t)flags, seconds, size, &session->item)) {
    case ALLOCATED:
        session->skip = 0;
        return;
    case ALLOCATION_TOO_LARGE:
        refuse(session, "SERVER_ERROR object too large for cache: store parts of it\r\n");
        break;
    case ALLOCATION_NO_MEMORY:
        refuse(session,
               "SERVER_ERROR out of memory storing object: start the server with a larger -m\r\n");
        break;
    }
    /* Who could not set a key does not expect to find what was there before. */
    if (session->how == STORING_SET)
        cache_delete(key);
}

void protocol_value(struct session *session) {
    struct item *item = session->item;
    const char *end = item_value(item) + item->value_size;
    session->item = NULL;
    if (memcmp(end, "\r\n", LINE_END_SIZE) != 0) {
        refuse(session,
               "CLIENT_ERROR bad data chunk: it does not end where the command's size says\r\n");
        cache_release(item);
        return;
    }
    switch (cache_store(item, session->how, session->cas)) {
    case STORED:
        answer(session, "STORED\r\n");
        break;
    case NOT_STORED:
        answer(session, "NOT_STORED\r\n");
        break;
    case STORED_EXISTS:
        answer(session, "EXISTS\r\n");
        break;
    case STORED_NOT_FOUND:
        answer(session, "NOT_FOUND\r\n");
        break;
    case STORED_NO_MEMORY:
        refuse(
            session,
            "SERVER_ERROR out of memory storing object: it is too large, or -m is too small\r\n");
        break;
    }
    cache_release(item);
}

static void run_get(struct session *session, const char *text, const char *end, bool with_cas) {
    struct reply *reply = &session->reply;
    struct word word;
    struct key key;
    if (!text_word(&text, end, &word))
        return refuse(session, "CLIENT_ERROR usage: get KEY...\r\n");
    uint64_t hits = 0, misses = 0;
    do {
        if (!read_key(session, word, &key))
            return;
        uint64_t cas;
        struct item *item = cache_find(key, &cas);
        if (!item) {
            misses++;
            continue;
        }
        hits++;
        reply_text(reply, "VALUE ");
        reply_bytes(reply, item->bytes, (size_t)item->key_size + item->head_size, NULL);
        if (with_cas)
            reply_print(reply, " %" PRIu64 "\r\n", cas);
        else
            reply_text(reply, "\r\n");
        reply_bytes(reply, item_value(item), item->value_size + LINE_END_SIZE, item);
    } while (text_word(&text, end, &word));
    reply_text(reply, "END\r\n");
    stats_add(STATS_cmd_get, hits + misses);
    stats_add(STATS_get_hits, hits);
    stats_add(STATS_get_misses, misses);
}

static void run_delete(struct session *session, const struct word *words, size_t count,
                       const struct command *command) {
    struct key key;
    if (!read_key(session, words[0], &key))
        return;
    /* Old clients give a time for which the key is locked; only 0 has ever been common. */
    if (count == 2 && !text_is(words[1], "0"))
        return refuse(session, command->usage);
    answer(session, cache_delete(key) ? "DELETED\r\n" : "NOT_FOUND\r\n");
}

static void run_count(struct session *session, const struct word *words, size_t count,
                      const struct command *command) {
    (void)count;
    struct key key;
    uint64_t by, result;
    if (!read_key(session, words[0], &key))
        return;
    if (!text_unsigned(words[1], UINT64_MAX, &by))
        return refuse(session, "CLIENT_ERROR invalid numeric delta argument\r\n");
    switch (cache_count(key, command->variant > 0, by, &result)) {
    case COUNTED:
        if (!session->is_quiet)
            reply_print(&session->reply, "%" PRIu64 "\r\n", result);
        return;
    case COUNTING_NOT_FOUND:
        return answer(session, "NOT_FOUND\r\n");
    case COUNTING_NO_NUMBER:
        return refuse(session, "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    case COUNTING_NO_MEMORY:
        return refuse(session, "SERVER_ERROR out of memory: start the server with a larger -m\r\n");
    }
}

static void run_touch(struct session *session, const struct word *words, size_t count,
                      const struct command *command) {
    (void)count, (void)command;
    struct key key;
    int64_t seconds;
    if (read_key(session, words[0], &key) && read_seconds(session, words[1], &seconds))
        answer(session, cache_touch(key, seconds) ? "TOUCHED\r\n" : "NOT_FOUND\r\n");
}

static void run_flush(struct session *session, const struct word *words, size_t count,
                      const struct command *command) {
    int64_t seconds = 0;
    if (count == 1 && !read_seconds(session, words[0], &seconds))
        return;
    if (seconds < 0)
        return refuse(session, command->usage);
    cache_flush(seconds);
    answer(session, "OK\r\n");
}

static void tell_stats(struct reply *reply) {
    uint64_t values[STATS_COUNT];
    stats_read(values);
    time_t now = time(NULL);
    reply_print(
        reply, "STAT pid %ld\r\nSTAT uptime %lld\r\nSTAT time %lld\r\nSTAT version " VERSION "\r\n",
        (long)getpid(), (long long)(now - protocol_settings.started), (long long)now);
    reply_print(reply, "STAT pointer_size %zu\r\nSTAT limit_maxbytes %zu\r\nSTAT threads %u\r\n",
                8 * sizeof(void *), protocol_settings.bytes_max, protocol_settings.threads);
    for (int i = 0; i < STATS_COUNT; i++)
        reply_print(reply, "STAT %s %" PRIu64 "\r\n", stats_names[i], values[i]);
}

static void run_stats(struct session *session, const struct word *words, size_t count,
                      const struct command *command) {
    struct reply *reply = &session->reply;
    if (count == 1 && text_is(words[0], "reset")) {
        stats_reset();
        return reply_text(reply, "RESET\r\n");
    }
    if (count == 0) {
        tell_stats(reply);
        return reply_text(reply, "END\r\n");
    }
    bool is_items = text_is(words[0], "items");
    if (!is_items && !text_is(words[0], "slabs"))
        return refuse(session, command->usage);
    char *text = is_items ? cache_describe_items() : cache_describe_slabs();
    if (!text)
        return refuse(session, "SERVER_ERROR out of memory\r\n");
    reply_text(reply, text);
    free(text);
    reply_text(reply, "END\r\n");
}

static void run_version(struct session *session, const struct word *words, size_t count,
                        const struct command *command) {
    (void)words, (void)count, (void)command;
    reply_text(&session->reply, "VERSION " VERSION "\r\n");
}

static void run_verbosity(struct session *session, const struct word *words, size_t count,
                          const struct command *command) {
    (void)count;
    uint64_t level;
    if (!text_unsigned(words[0], UINT32_MAX, &level))
        return refuse(session, command->usage);
    atomic_store_explicit(&verbosity, (unsigned)level, memory_order_relaxed);
    answer(session, "OK\r\n");
}

static void run_quit(struct session *session, const struct word *words, size_t count,
                     const struct command *command) {
    (void)words, (void)count, (void)command;
    session->ends = true;
}

#define USAGE(text) "CLIENT_ERROR usage: " text "\r\n"
static const struct command commands[] = {
    {"set", run_storing, 4, 4, true, STORING_SET, USAGE("set KEY FLAGS SECONDS BYTES [noreply]")},
    {"add", run_storing, 4, 4, true, STORING_ADD, USAGE("add KEY FLAGS SECONDS BYTES [noreply]")},
    {"replace", run_storing, 4, 4, true, STORING_REPLACE,
     USAGE("replace KEY FLAGS SECONDS BYTES [noreply]")},
    {"append", run_storing, 4, 4, true, STORING_APPEND,
     USAGE("append KEY FLAGS SECONDS BYTES [noreply]")},
    {"prepend", run_storing, 4, 4, true, STORING_PREPEND,
     USAGE("prepend KEY FLAGS SECONDS BYTES [noreply]")},
    {"cas", run_storing, 5, 5, true, STORING_CAS,
     USAGE("cas KEY FLAGS SECONDS BYTES UNIQUE [noreply]")},
    {"delete", run_delete, 1, 2, true, 0, USAGE("delete KEY [noreply]")},
    {"incr", run_count, 2, 2, true, 1, USAGE("incr KEY NUMBER [noreply]")},
    {"decr", run_count, 2, 2, true, -1, USAGE("decr KEY NUMBER [noreply]")},
    {"touch", run_touch, 2, 2, true, 0, USAGE("touch KEY SECONDS [noreply]")},
    {"flush_all", run_flush, 0, 1, true, 0, USAGE("flush_all [SECONDS] [noreply]")},
    {"stats", run_stats, 0, 1, false, 0, USAGE("stats [items|slabs|reset]")},
    {"version", run_version, 0, 0, false, 0, USAGE("version")},
    {"verbosity", run_verbosity, 1, 1, true, 0, USAGE("verbosity LEVEL [noreply]")},
    {"quit", run_quit, 0, 0, false, 0, USAGE("quit")},
};

void protocol_line(struct session *session, const char *line, size_t size) {
    const char *end = line + size;
    struct word name, words[WORDS_MAX];
    session->is_quiet = false;
    if (atomic_load_explicit(&verbosity, memory_order_relaxed) >= 2)
        fprintf(stderr, "< %.*s\n", (int)size, line);
    if (!text_word(&line, end, &name))
        return refuse(session, "ERROR\r\n");
    if (text_is(name, "get") || text_is(name, "gets"))
        return run_get(session, line, end, name.size == 4);

    size_t count = 0;
    while (count < WORDS_MAX && text_word(&line, end, &words[count]))
        count++;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const struct command *command = &commands[i];
        if (!text_is(name, command->name))
            continue;
        if (command->takes_noreply && count > 0 && text_is(words[count - 1], "noreply")) {
            session->is_quiet = true;
            count--;
        }
        if (count < command->words_min || count > command->words_max)
            return refuse(session, command->usage);
        return command->run(session, words, count, command);
    }
    refuse(session, "ERROR\r\n");
}

void protocol_long_line(struct session *session) {
    session->is_quiet = false;
    refuse(session, "CLIENT_ERROR the line is too long: send several commands\r\n");
}

void protocol_end(struct session *session) {
    if (session->item)
        cache_release(session->item);
    session->item = NULL;
    reply_end(&session->reply);
}
