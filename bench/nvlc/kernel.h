/* A kernel is one text for all sides: NVL-C, or plain C with the nvl.h in `plain`. main.c runs it.
 * Its rows run one after the other, each so much work; before that it is reset, which is not timed.
 * All sides give the same answers. */
#ifndef KERNEL_H
#define KERNEL_H

#include <nvl.h>

#include "run.h" /* of examples/nvl: random numbers */

/* What NVL-C finds out by itself and plain programs say: what was written, and when it has to be
 * durable, on the side `flush1`; and that nothing leads to an object any more. */
#ifndef WROTE
#define WROTE(lvalue) ((void)0)
#define WROTE_ROW(start, n) ((void)0)
#define DURABLE() ((void)0)
#endif
#ifndef DROPPED
#define DROPPED(heap, ptr) ((void)0)
#endif

/* The rows, with NULL behind them. */
extern const char *const rows[];

void set_up(nvl_heap_t *heap, long size);
void reset(void);
void run(nvl_heap_t *heap, int row, long work);
double answer(int row);

#endif
