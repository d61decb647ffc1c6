/* What sections of caller.c call. */
#include <stdint.h>

void callee_of_certain(uint64_t *number) { *number += 3; }
void callee_of_maybe(uint64_t *number) { *number = 5 * *number + 1; }
