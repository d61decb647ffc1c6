// What may be called inside of a section and outside waits with its lock, and lets its caller's lock go: whether that
// is right, only the run knows.
// RUN: %simulated/bin/durumcc -fido -O0 -c %s -o %t
// RUN: %simulated/bin/durumcc -fido -O2 -c %s -o %t
#include <pthread.h>

struct data {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    long number;
};

void consume(struct data *data) {
    pthread_mutex_lock(&data->lock);
    while (!data->number)
        pthread_cond_wait(&data->changed, &data->lock);
    data->number--;
    pthread_mutex_unlock(&data->lock);
}

void release(struct data *data) {
    data->number++;
    pthread_mutex_unlock(&data->lock);
}
