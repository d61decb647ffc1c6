/* Gas in a tube behind a diaphragm that breaks (Sod's problem), in the place of LULESH: a solver
 * with steps in time, whose cells are read before they are written, so that each step keeps a
 * backup of them. Work is counted in steps. */
#include "kernel.h"

#include <math.h>

#define GAMMA 1.4

struct cell {
    double density;
    double momentum;
    double energy;
};

struct tube {
    long done;
    double time;
    nvl struct cell *cells;
};

const char *const rows[] = {"shock", NULL};
static nvl struct tube *tube;
static struct cell *scratch;
static long length;

void set_up(nvl_heap_t *heap, long size) {
    length = size;
    tube = nvl_alloc_nv(heap, 1, struct tube);
    nvl_set_root(heap, tube);
    tube->cells = nvl_alloc_nv(heap, size, struct cell);
    scratch = calloc((size_t)size, sizeof *scratch);
    if (!scratch)
        exit(1);
}

void reset(void) {
    nvl struct cell *cells = tube->cells;
    for (long i = 0; i < length; ++i) {
        double p = i < length / 2 ? 1.0 : 0.1;
        cells[i].density = i < length / 2 ? 1.0 : 0.125;
        cells[i].momentum = 0.0;
        cells[i].energy = p / (GAMMA - 1.0);
    }
    tube->time = 0.0;
    tube->done = 0;
}

static double pressure(struct cell cell) {
    return (GAMMA - 1.0) * (cell.energy - 0.5 * cell.momentum * cell.momentum / cell.density);
}

static struct cell flux(struct cell cell) {
    double speed = cell.momentum / cell.density, p = pressure(cell);
    return (struct cell){cell.momentum, cell.momentum * speed + p, (cell.energy + p) * speed};
}

/* One step of all cells but those at the ends. Returns how long it was. */
static double step(nvl struct cell *cells, struct cell *next, long n) {
    double fastest = 0.0, width = 1.0 / (double)n;
    for (long i = 0; i < n; ++i) {
        double sound = sqrt(GAMMA * pressure(cells[i]) / cells[i].density);
        double speed = fabs(cells[i].momentum / cells[i].density) + sound;
        fastest = speed > fastest ? speed : fastest;
    }
    double time = 0.9 * width / fastest, half = 0.5 * time / width;
    for (long i = 1; i < n - 1; ++i) {
        struct cell left = flux(cells[i - 1]), right = flux(cells[i + 1]);
        next[i].density = 0.5 * (cells[i - 1].density + cells[i + 1].density) -
                          half * (right.density - left.density);
        next[i].momentum = 0.5 * (cells[i - 1].momentum + cells[i + 1].momentum) -
                           half * (right.momentum - left.momentum);
        next[i].energy =
            0.5 * (cells[i - 1].energy + cells[i + 1].energy) - half * (right.energy - left.energy);
    }
    for (long i = 1; i < n - 1; ++i)
        cells[i] = next[i];
    return time;
}

void run(nvl_heap_t *heap, int row, long work) {
    (void)row;
    long n = length;
    nvl struct cell *cells = tube->cells;
    while (tube->done < work) {
#pragma nvl atomic heap(heap) backup(cells [0:n], tube->time, tube->done)
        {
            tube->time += step(cells, scratch, n);
            tube->done++;
        }
        WROTE_ROW(cells, n);
        WROTE(tube->time);
        WROTE(tube->done);
        DURABLE();
    }
}

double answer(int row) {
    (void)row;
    double sum = tube->time;
    for (long i = 0; i < length; ++i)
        sum += (tube->cells[i].density + tube->cells[i].momentum + tube->cells[i].energy) *
               (double)(i % 7 + 1);
    return sum;
}
