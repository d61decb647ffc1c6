/* A cache that several programs share: values by keys, in memory, over memcached's text protocol.
 *
 * main.c        options
 * server.c      threads, and the sockets that they wait for
 * connection.c  what is read from a socket
 * protocol.c    commands, and their answers; text.c: words and numbers
 * reply.c       what is sent
 * cache.c       what commands do to items, under the cache's lock
 * table.c       items by keys      lru.c     items by age
 * slabs.c       their memory       stats.c   counters, under a lock of their own
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol.h"
#include "server.h"
#include "text.h"

static const char usage[] =
    "usage: cache [-p PORT] [-m MEGABYTES] [-t THREADS]\n"
    "Serves memcached's text protocol on the loopback interface until SIGINT or SIGTERM.\n"
    "  -p PORT       TCP port; 0: any; the one that is used is printed (11211)\n"
    "  -m MEGABYTES  memory for items; each size of items may have 1 MB more (64)\n"
    "  -t THREADS    threads that serve clients (4)\n"
    "  -h            prints this\n";

static uint64_t number_of(char option, const char *text, uint64_t min, uint64_t max) {
    uint64_t number;
    if (text_unsigned((struct word){text, strlen(text)}, max, &number) && number >= min)
        return number;
    fprintf(stderr, "cache: -%c takes a number from %llu to %llu, and not '%s'\n", option,
            (unsigned long long)min, (unsigned long long)max, text);
    exit(2);
}

int main(int count, char **arguments) {
    uint16_t port = 11211;
    size_t megabytes = 64;
    unsigned threads = 4;
    int option;
    while ((option = getopt(count, arguments, "p:m:t:h")) != -1) {
        switch (option) {
        case 'p':
            port = (uint16_t)number_of('p', optarg, 0, UINT16_MAX);
            break;
        case 'm':
            megabytes = number_of('m', optarg, 1, 1 << 20);
            break;
        case 't':
            threads = (unsigned)number_of('t', optarg, 1, SERVER_THREADS_MAX);
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind < count) {
        fprintf(stderr, "cache: '%s' is no option\n%s", arguments[optind], usage);
        return 2;
    }
    protocol_settings =
        (struct settings){.bytes_max = megabytes << 20, .threads = threads, .started = time(NULL)};
    if (!cache_start(protocol_settings.bytes_max)) {
        fprintf(stderr, "cache: there is no memory for the table\n");
        return 1;
    }
    bool ended_well = server_run(port, threads);
    cache_stop();
    return ended_well ? 0 : 1;
}
