/* Sections that call the C library: what fills memory is done again after a crash, what asks the system is not. */
#define _GNU_SOURCE
#include "simulated.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

struct root {
    pthread_mutex_t lock;
    uint64_t number, sum, odd, even, latest;
    char text[64], other[64];
    struct timespec begun, ended;
    struct timeval told;
    time_t first, last;
    _Atomic uint64_t seen;
};

/* A text in a local variable that is a number again; the buffer is used two times. */
__attribute__((noinline)) static void write_local(struct root *root, uint64_t by) {
    char digits[24];
    pthread_mutex_lock(&root->lock);
    int size = snprintf(digits, sizeof digits, "%" PRIu64, root->number);
    root->sum += size;
    root->number = strtoull(digits, NULL, 10) + by;
    size = snprintf(digits, sizeof digits, "<%" PRIu64 ">", root->number);
    memcpy(root->text, digits, size + 1);
    root->sum = 31 * root->sum + strlen(root->text);
    pthread_mutex_unlock(&root->lock);
}

/* Texts of the store, one made of the other and back. */
__attribute__((noinline)) static void turn(struct root *root, const char *word) {
    pthread_mutex_lock(&root->lock);
    snprintf(root->other, sizeof root->other, "%.40s-%s", root->text, word);
    snprintf(root->text, sizeof root->text, "%.50s", root->other + 1);
    strncpy(root->other, root->text, 20);
    root->sum += root->other[3];
    pthread_mutex_unlock(&root->lock);
}

/* What was read is overwritten by the call: a region begins in front of it. */
__attribute__((noinline)) static void count_text(struct root *root) {
    pthread_mutex_lock(&root->lock);
    char *end = root->text;
    for (int i = 0; i < 3; i++) {
        uint64_t value = strtoul(root->text + strcspn(root->text, "0123456789"), &end, 10);
        root->sum = 31 * root->sum + (end - root->text);
        sprintf(root->text, "n%" PRIu64, value % 100000 + i);
    }
    pthread_mutex_unlock(&root->lock);
}

/* Where only the caller has the buffer. */
__attribute__((noinline)) static void write_elsewhere(struct root *root, char *text, size_t room) {
    pthread_mutex_lock(&root->lock);
    root->number++;
    snprintf(text, room, "%" PRIu64 " %s", root->number, root->text);
    root->sum ^= root->number;
    pthread_mutex_unlock(&root->lock);
}

/* The time is asked for once: all that is made of it tells the same one. */
__attribute__((noinline)) static void ask(struct root *root) {
    pthread_mutex_lock(&root->lock);
    const uint64_t sum = root->sum + root->number;
    struct timespec now;
    root->latest = root->sum = sum;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_nsec % 2)
        root->odd = sum;
    else
        root->even = sum;
    root->begun = now;
    root->ended = root->begun;
    root->ended.tv_sec += root->begun.tv_nsec == now.tv_nsec && root->begun.tv_sec == now.tv_sec;
    root->last = time(&root->first);
    gettimeofday(&root->told, NULL);
    root->number += root->told.tv_usec < 1000000;
    pthread_mutex_unlock(&root->lock);
}

__attribute__((noinline)) static void tell_time(struct root *root, int days) {
    pthread_mutex_lock(&root->lock);
    struct tm tm = {.tm_year = 100 + days, .tm_mon = days % 12, .tm_mday = 1 + days % 28};
    root->sum += strftime(root->other, sizeof root->other, "%Y-%m-%d", &tm);
    root->number += memcmp(root->text, root->other, 4) < 0;
    pthread_mutex_unlock(&root->lock);
}

/* Texts that have no length, and what their characters are. */
__attribute__((noinline)) static void copy(struct root *root, int number) {
    pthread_mutex_lock(&root->lock);
    strcpy(root->other, root->text + number % 3);
    char *end = stpcpy(root->text, isdigit((unsigned char)root->other[0]) ? root->other : root->other + 1);
    for (char *at = root->text; at < end; at++)
        if (isalpha((unsigned char)*at))
            *at = isupper((unsigned char)*at) ? tolower(*at) : toupper(*at);
        else
            root->sum += isspace((unsigned char)*at) != 0;
    pthread_mutex_unlock(&root->lock);
}

/* What others read without the lock. */
__attribute__((noinline)) static void publish(struct root *root) {
    pthread_mutex_lock(&root->lock);
    uint64_t seen = atomic_load_explicit(&root->seen, memory_order_acquire);
    atomic_store_explicit(&root->seen, seen + root->number, memory_order_release);
    root->sum += seen;
    atomic_store(&root->seen, seen + 3 * root->sum);
    pthread_mutex_unlock(&root->lock);
}

void init(struct root *root) {
    root->number = 7;
    strcpy(root->text, "begin 12 end");
}

const int operations = 40;

void operate(struct root *root, int number) {
    char text[80];
    switch (number % 8) {
    case 0:
        return write_local(root, 1000 * number);
    case 1:
        return turn(root, number % 16 == 1 ? "one" : "other");
    case 2:
    case 5:
        return ask(root);
    case 3:
        return count_text(root);
    case 4:
        return write_elsewhere(root, text, sizeof text);
    case 6:
        return number % 16 == 6 ? copy(root, number) : tell_time(root, number);
    case 7:
        return publish(root);
    }
}

uint64_t digest(const struct root *root) {
    uint64_t sum = root->number + 31 * root->sum;
    for (int i = 0; i < 64; i++)
        sum = 31 * sum + (unsigned char)root->text[i];
    for (int i = 0; i < 64; i++)
        sum = 31 * sum + (unsigned char)root->other[i];
    int is_one = (root->odd == root->latest) + (root->even == root->latest);
    int is_same = root->begun.tv_nsec == root->ended.tv_nsec;
    return sum + (root->ended.tv_sec - root->begun.tv_sec) + is_one + is_same + (root->first == root->last) +
           7 * root->seen;
}
