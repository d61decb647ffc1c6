/* The same for grids that no cache near the processor holds. */
#undef JACOBI_ROW
#define JACOBI_ROW "jacobi_2048"
#include "jacobi.c"
