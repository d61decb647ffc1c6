/* The same for arrays that no cache holds. */
#undef FILL_ROW
#define FILL_ROW(name) name "_256m"
#include "fill.c"
