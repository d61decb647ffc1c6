// What cannot last as a variable.
// RUN: not %durumcc -fido -ferror-limit=0 -c %s -o %t 2>&1 | %filecheck
#include <nv.h>
#include <vector>

int number();

// CHECK-DAG: lasting.cpp:[[@LINE+1]]:{{.*}}error: 'own' is to last and belongs to a thread, which does not{{.*}}[ido-durable-thread]
thread_local durum_durable int own;
// CHECK-DAG: lasting.cpp:[[@LINE+1]]:{{.*}}error: 'drawn' is to last and is made, or given up, by code{{.*}}[ido-durable-code]
durum_durable int drawn = number();
// CHECK-DAG: lasting.cpp:[[@LINE+1]]:{{.*}}error: 'numbers' is to last{{.*}}[ido-durable-code]
durum_durable std::vector<int> numbers;
// CHECK-NOT: error: 'constant'
durum_durable const int *constant = nullptr;

int next() {
    // CHECK-DAG: lasting.cpp:[[@LINE+1]]:{{.*}}error: 'first' is to last{{.*}}[ido-durable-code]
    static durum_durable int first = number();
    return first++;
}
