/* Gas in a tube behind a diaphragm that breaks (Sod's problem): Euler's equations in one dimension,
 * by the method of Lax and Friedrichs, with steps as long as is stable. */
#ifndef SHOCK_H
#define SHOCK_H

#include <math.h>

#define GAMMA 1.4

struct cell {
    double density;
    double momentum;
    double energy;
};

/* The gas before the diaphragm breaks. */
static void fill(nvl struct cell *cells, long n) {
    for (long i = 0; i < n; ++i) {
        double p = i < n / 2 ? 1.0 : 0.1;
        cells[i].density = i < n / 2 ? 1.0 : 0.125;
        cells[i].momentum = 0.0;
        cells[i].energy = p / (GAMMA - 1.0);
    }
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

static double sum_of(nvl const struct cell *cells, long n) {
    double sum = 0.0;
    for (long i = 0; i < n; ++i)
        sum += (cells[i].density + cells[i].momentum + cells[i].energy) * (double)(i % 7 + 1);
    return sum;
}

#endif
