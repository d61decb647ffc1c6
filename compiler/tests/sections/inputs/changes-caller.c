/* The section is begun by a call, and ended by another one: what lies between is durable. */
#include "changes.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    (void)argc;
    struct counter *counter = (struct counter *)nv_root(sizeof *counter);
    const long run = atoi(argv[2]);
    take(counter);
    counter->count++;
    counter->twice = 2 * counter->count;
    give(counter);
    return counter->count != run + 1 || counter->twice != 2 * counter->count;
}
