/* Gas in a tube, as shock.h computes it. Cells are read before they are written, so each step keeps
 * a backup of them; the time goes on with them. `shock HEAP [CELLS [STEPS]]` */
#include "heap.h"
#include "run.h"

#include <nvl.h>

#include "shock.h"

struct tube {
    long length;
    long steps;
    long done;
    double time;
    nvl struct cell *cells;
};

static nvl struct tube *begin(nvl_heap_t *heap, long n, long steps) {
    nvl struct tube *made = nvl_alloc_nv(heap, 1, struct tube);
    nvl struct cell *cells = nvl_alloc_nv(heap, n, struct cell);
    fill(cells, n);
    made->length = n;
    made->steps = steps;
    made->cells = cells;
    nvl_set_root(heap, made);
    return made;
}

int main(int argc, char **argv) {
    nvl_heap_t *heap = heap_of(argc, argv);
    nvl struct tube *tube = nvl_get_root(heap, struct tube);
    if (!tube)
        tube = begin(heap, argument(argc, argv, 2, 2000), argument(argc, argv, 3, 500));
    long n = tube->length;
    nvl struct cell *cells = tube->cells;
    struct cell *next = calloc((size_t)n, sizeof *next);
    if (!next)
        return 1;
    while (tube->done < tube->steps) {
#pragma nvl atomic heap(heap) backup(cells [0:n], tube->time, tube->done)
        {
            tube->time += step(cells, next, n);
            tube->done++;
        }
    }
    printf("shock %ld %ld: %.17g at %.17g\n", n, tube->steps, sum_of(cells, n), tube->time);
    nvl_close(heap);
    return 0;
}
