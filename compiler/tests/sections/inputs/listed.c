/* A program that nobody changed: which of its variables last says a list. Each run finds what the runs before it have counted.
 *
 *   program - RUN
 */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* It lasts. */
static TYPE count;
struct {
    long sums[4];
    struct list *first;
} table = {{5}, NULL};
/* They do not. */
static int runs;
static long calls;

static long next(void) {
    static long calls = 10;
    return calls++;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    long run = atol(argv[2]);
    runs++;
    calls++;
    pthread_mutex_lock(&lock);
    int is_expected = count == run && table.sums[0] == 5 + 2 * run;
    count++;
    table.sums[0] += 2;
    is_expected &= next() == 10 + run;
    pthread_mutex_unlock(&lock);
    return !is_expected || runs != 1 || calls != 1;
}
