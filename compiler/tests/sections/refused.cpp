// What sections may not do in C++, beside what C has (refused.c).
// RUN: not %simulated/bin/durumc++ -fido -O1 -ferror-limit=0 -c %s -o %t 2>&1 | %filecheck
// RUN: not %simulated/bin/durumc++ -fido -O0 -ferror-limit=0 -c %s -o %t 2>&1 | %filecheck
#include <pthread.h>

struct data {
    pthread_mutex_t lock;
    long number;
};
long take(data &data);

void caught(data &data) {
    pthread_mutex_lock(&data.lock);
    try {
        data.number += take(data);
        // CHECK: refused.cpp:[[@LINE+1]]:{{.*}}error: an exception is caught in a section{{.*}}[ido-exception]
    } catch (int number) {
        data.number = number;
    }
    pthread_mutex_unlock(&data.lock);
}
