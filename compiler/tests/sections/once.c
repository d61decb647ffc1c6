// What is wrong is told once for a place, also where code was inlined several times.
// RUN: not %simulated/bin/durumcc -fido -O2 -ferror-limit=0 -c %s -o %t 2>&1 | FileCheck --implicit-check-not=error: %s
#include <pthread.h>

struct data {
    pthread_mutex_t lock;
    volatile int seen;
};

// CHECK: once.c:[[@LINE+1]]:{{.*}}error: a volatile access in a section{{.*}}[ido-volatile]
static inline void see(struct data *data, int value) { data->seen = value; }

void one(struct data *data) {
    pthread_mutex_lock(&data->lock);
    see(data, 1);
    pthread_mutex_unlock(&data->lock);
}
void another(struct data *data) {
    pthread_mutex_lock(&data->lock);
    see(data, 2);
    see(data, 3);
    pthread_mutex_unlock(&data->lock);
}
