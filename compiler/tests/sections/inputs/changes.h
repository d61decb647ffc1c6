/* A lock that one file takes and lets go for another. */
#include <nv.h>
#include <pthread.h>

#ifndef TAKES
#define TAKES durum_locks(+1)
#endif
#ifndef GIVES
#define GIVES durum_locks(-1)
#endif

#ifdef __cplusplus
extern "C" {
#endif
struct counter {
    pthread_mutex_t lock;
    long count, twice;
};

TAKES struct counter *take(struct counter *counter);
GIVES void give(struct counter *counter);
#ifdef __cplusplus
}
#endif
