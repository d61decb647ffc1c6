/* When the heap is opened: WAY is which program this is. Each run finds what the runs before it have counted.
 *
 *   program HEAP RUN
 */
#include <nv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static durum_durable char words[8][16];
static durum_durable long count;

__attribute__((noinline)) static void read_word(char *word) { strcpy(word, "word"); }

static int is_whole(long expected) {
    for (long i = 0; i < count; i++)
        if (words[i][0] != 'w' + i || strcmp(words[i] + 1, "ord"))
            return 0;
    return count == expected;
}

int main(int argc, char **argv) {
    char word[16] = "";
    if (argc != 3)
        return 2;
    read_word(word);
#if WAY == 1
    /* The first use of the heap opens it. */
    (void)argv[1];
#elif WAY == 2 || WAY == 3
    /* It is opened when there is the local. */
    if (nv_open(argv[1]))
        return 4;
#elif WAY == 4
    /* Not before what is made by fork uses it. */
    pid_t child = fork();
    if (child) {
        int status;
        waitpid(child, &status, 0);
        return !WIFEXITED(status) || WEXITSTATUS(status);
    }
#endif
    int is_expected = is_whole(atol(argv[2]));
#if WAY == 1 || WAY == 3
    /* The section uses the local. */
    pthread_mutex_lock(&lock);
    word[0] += count;
    memcpy(words[count], word, sizeof word);
    count++;
    pthread_mutex_unlock(&lock);
#else
    /* What it uses has been read before. */
    char first = word[0], second = word[1], third = word[2], fourth = word[3];
    pthread_mutex_lock(&lock);
    char *new = words[count];
    new[0] = first + count, new[1] = second, new[2] = third, new[3] = fourth, new[4] = 0;
    count++;
    pthread_mutex_unlock(&lock);
#endif
    return !is_expected;
}
