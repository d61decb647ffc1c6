// A durable variable has another address in each run.
// RUN: not %simulated/bin/durumcc -fido -c %s -o %t 2>&1 | %filecheck
// CHECK: error: the address of a durable variable in the initializer of another one (first){{.*}}[ido-initializer]
#include "inputs/simulated.h"

durum_durable long first;
long *const second = &first;
