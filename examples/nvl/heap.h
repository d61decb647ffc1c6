/* Where a program keeps what it has done. */
#ifndef HEAP_H
#define HEAP_H

#include <durum.h>
#include <errno.h>
#include <nvl.h>
#include <stdio.h>
#include <stdlib.h>

/* The heap that the first argument names: of an earlier run, or a new one. Ends the program if
 * there is none. */
static inline nvl_heap_t *heap_of(int argc, char **argv) {
    nvl_heap_t *heap = NULL;
    if (argc >= 2) {
        heap = nvl_open(argv[1]);
        /* Only where there is none: why a heap cannot be opened must be told. */
        if (!heap && errno == ENOENT)
            heap = nvl_create(argv[1]);
    }
    if (!heap) {
        fprintf(stderr, "%s: %s\n", argv[0], argc < 2 ? "give a heap" : nvl_error());
        exit(argc < 2 ? 2 : 1);
    }
    return heap;
}

#endif
