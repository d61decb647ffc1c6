// Loops over arrays in NVM, of lengths that only the program knows: durable outside of transactions, taken back inside
// of one that does not commit.
// RUN: %levels %s
// RUN: %levels %s -march=native -Wno-invalid-feature-combination
#include "inputs/test.h"

enum { rows = 9, columns = 70 };
struct cell {
    double x, y;
    long hits;
};
struct data {
    double matrix[rows][columns];
    struct cell cells[64];
    char text[100];
    int count;
    double block[6][10];
};

#define SHAPE __attribute__((noinline))
SHAPE static void up(nvl double *a, long from, long to, double value) {
    for (long i = from; i < to; i++)
        a[i] = value + (double)i;
}
SHAPE static void down(nvl double *a, int n) {
    for (int i = n - 1; i >= 0; i--)
        a[i] = -(double)i;
}
SHAPE static void all(nvl double a[rows][columns], int n, int m) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            a[i][j] = i * 100 + j;
}
SHAPE static void every_other(nvl double *a, int n) {
    for (int i = 0; i < n; i += 2)
        a[i] += 1;
}
SHAPE static void members(nvl struct cell *cells, int n) {
    for (int i = 0; i < n; i++) {
        cells[i].x = i;
        cells[i].hits++;
    }
}
SHAPE static int until(nvl double *a, double limit) {
    int i = 0;
    while (a[i] < limit)
        a[i++] = limit;
    return i;
}
SHAPE static void some(nvl double *a, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] < 0)
            a[i] = 0;
}
SHAPE static void string(nvl char *to, const char *from) {
    while ((*to++ = *from++))
        ;
}
SHAPE static void count(nvl int *n, int times) {
    for (int i = 0; i < times; i++)
        ++*n;
}
SHAPE static void shift(nvl double *a, int n) {
    for (int i = 0; i + 1 < n; i++)
        a[i] = a[i + 1];
}
SHAPE static void wrapped(nvl double *a, unsigned char from, int n) {
    for (int i = 0; i < n; i++, from++)
        a[from & 31] = i;
}

// Two arrays by turns, as far as the input goes; a loop that is entered again, with a gap, backwards.
SHAPE static void in_turn(nvl double *a, nvl double *b, const double *from) {
    for (; *from >= 0; from++) {
        *a++ = *from;
        *b++ = -*from;
    }
}
SHAPE static void again(nvl double *a, const double *from, int times) {
    while (times-- > 0)
        for (int i = 0; from[i] >= 0; i++)
            if (i != 3)
                a[10 * times + 9 - i] = from[i];
}
// Rows with gaps between them, in a function that anybody may call.
void inner(nvl double a[6][10], int n, int m);
SHAPE void inner(nvl double a[6][10], int n, int m) {
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < m - 1; j++)
            a[i][j] = i * 10 + j;
}

static const double input[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, -1};

SHAPE static void change(nvl struct data *d) {
    all(d->matrix, rows, columns);
    all(d->matrix, 0, columns);
    all(d->matrix, rows, 0);
    up(d->matrix[1], 3, 20, 0.5);
    up(d->matrix[1], 30, 20, 0.5);
    down(d->matrix[2], 40);
    down(d->matrix[2], 0);
    every_other(d->matrix[3], columns);
    members(d->cells, 50);
    d->cells[60].y = until(d->matrix[4], 430);
    some(d->matrix[2], columns);
    string(d->text, "a text of some length");
    count(&d->count, 1000);
    count(&d->count, 0);
    shift(d->matrix[5], columns);
    wrapped(d->matrix[6], 250, 20);
    in_turn(d->matrix[7], d->matrix[7] + 20, input);
    again(d->matrix[8], input, 3);
    inner(d->block, 6, 10);
}
static int is_changed(nvl struct data *d) {
    CHECK(d->matrix[0][1] == 1 && d->matrix[0][69] == 69 && d->matrix[8][69] == 869);
    CHECK(d->matrix[1][2] == 102 && d->matrix[1][3] == 3.5 && d->matrix[1][19] == 19.5 && d->matrix[1][20] == 120);
    CHECK(d->matrix[2][0] == 0 && d->matrix[2][39] == 0 && d->matrix[2][40] == 240);
    CHECK(d->matrix[3][0] == 301 && d->matrix[3][1] == 301 && d->matrix[3][68] == 369 && d->matrix[3][69] == 369);
    CHECK(d->matrix[4][0] == 430 && d->matrix[4][29] == 430 && d->matrix[4][31] == 431 && d->cells[60].y == 30);
    CHECK(d->matrix[5][0] == 501 && d->matrix[5][68] == 569 && d->matrix[5][69] == 569);
    CHECK(d->matrix[6][26] == 0 && d->matrix[6][31] == 5 && d->matrix[6][13] == 19 && d->matrix[6][14] == 614);
    CHECK(d->matrix[7][0] == 1 && d->matrix[7][8] == 9 && d->matrix[7][9] == 709 && d->matrix[7][20] == -1 && d->matrix[7][28] == -9);
    CHECK(d->matrix[8][9] == 1 && d->matrix[8][1] == 9 && d->matrix[8][6] == 806 && d->matrix[8][0] == 800);
    CHECK(d->matrix[8][29] == 1 && d->matrix[8][21] == 9 && d->matrix[8][26] == 826);
    CHECK(d->block[1][1] == 11 && d->block[4][8] == 48 && d->block[1][9] == 0 && d->block[0][1] == 0);
    CHECK(d->cells[49].x == 49 && d->cells[49].hits == 1 && d->cells[50].x == 0 && d->cells[50].hits == 0);
    CHECK(d->text[0] == 'a' && d->text[20] == 'h' && d->text[21] == 0 && d->count == 1000);
    return 1;
}
static int is_zero(nvl struct data *d) {
    nvl char *bytes = (nvl char *)d;
    for (size_t i = 0; i < sizeof *d; i++)
        if (bytes[i])
            return 0;
    return 1;
}

static void inside(nvl_heap_t *heap) {
#pragma nvl atomic heap(heap)
    {
        change(nvl_get_root(heap, struct data));
        exit(0);
    }
}
static void committed(nvl_heap_t *heap) {
#pragma nvl atomic heap(heap)
    change(nvl_get_root(heap, struct data));
}
static void outside(nvl_heap_t *heap) { change(nvl_get_root(heap, struct data)); }
static void cleared(nvl_heap_t *heap) {
    nvl char *bytes = (nvl char *)nvl_get_root(heap, struct data);
    for (size_t i = 0; i < sizeof(struct data); i++)
        bytes[i] = 0;
}

static void check(int (*is)(nvl struct data *)) {
    nvl_heap_t *heap = nvl_open("heap");
    CHECK(is(nvl_get_root(heap, struct data)));
    nvl_close(heap);
}
static void unchanged(void) { check(is_zero); }
static void changed(void) { check(is_changed); }
static void set_up(void) {
    nvl_heap_t *heap = nvl_create("heap");
    nvl_set_root(heap, nvl_alloc_nv(heap, 1, struct data));
    nvl_close(heap);
}

int main(void) {
    done(set_up);
    CHECK(in_process(inside) == 0);
    done(unchanged);
    killed(outside);
    done(changed);
    killed(cleared);
    done(unchanged);
    killed(committed);
    done(changed);
    return 0;
}
