// Vectors stored in parts are one store, where the compiler knows how; what only the processor knows is refused.
// RUN: %front-end -fido -O3 -mavx2 -I%S/inputs -S -emit-llvm %S/inputs/masked.c -o - | %filecheck --check-prefix=MASKED
// MASKED: call void @llvm.masked.store
// RUN: not %simulated/bin/durumcc -fido -O2 -mavx2 -c %s -o %t 2>&1 | %filecheck
#include <immintrin.h>
#include <pthread.h>

struct data {
    pthread_mutex_t lock;
    long long numbers[4];
};

void store_parts(struct data *data, __m256i mask, __m256i numbers) {
    pthread_mutex_lock(&data->lock);
    // CHECK: vectors.c:[[@LINE+1]]:{{.*}}error: an instruction that stores vectors in another way {{.*}}[ido-vector]
    _mm256_maskstore_epi64(data->numbers, mask, numbers);
    pthread_mutex_unlock(&data->lock);
}
