// What vectors read in parts, or by many pointers, is asked for as whatever a section reads behind its first store.
// RUN: %simulated/bin/durumcc -fido -O3 -march=skylake -S -emit-llvm %s -o - | %filecheck
#include <immintrin.h>
#include <pthread.h>

struct data {
    pthread_mutex_t lock;
    long long sum;
    int places[1024];
};

// CHECK-LABEL: define {{.*}}@from_array(
void from_array(struct data *data, const long long *numbers) {
    pthread_mutex_lock(&data->lock);
    long long sum = data->sum++;
    for (int i = 0; i < 1024; i++) {
        int place = data->places[i];
        // CHECK: call {{.*}}@__durum_ido_read_elsewhere.ask({{.*}}gathers.c.[[@LINE+2]].ido-elsewhere.
        // CHECK: call {{.*}}@llvm.masked.gather
        sum += numbers[place];
    }
    data->sum = sum;
    pthread_mutex_unlock(&data->lock);
}

// CHECK-LABEL: define {{.*}}@from_everywhere(
void from_everywhere(struct data *data, const long long *const *pointers) {
    pthread_mutex_lock(&data->lock);
    long long sum = data->sum++;
#pragma clang loop vectorize_width(4) interleave(disable) unroll(disable)
    for (int i = 0; i < 1024; i++) {
        const long long *pointer = pointers[i];
        // CHECK-COUNT-4: call {{.*}}@__durum_ido_read_elsewhere.ask({{.*}}gathers.c.[[@LINE+2]].ido-elsewhere.
        // CHECK: call {{.*}}@llvm.masked.gather
        sum += *pointer;
    }
    data->sum = sum;
    pthread_mutex_unlock(&data->lock);
}

// CHECK-LABEL: define {{.*}}@in_parts(
void in_parts(struct data *data, const long long *numbers, __m256i mask) {
    pthread_mutex_lock(&data->lock);
    data->sum++;
    // CHECK: call {{.*}}@__durum_ido_read_elsewhere.ask({{.*}}gathers.c.[[@LINE+2]].ido-elsewhere.
    // CHECK: call {{.*}}@llvm.x86.avx2.maskload
    data->sum += _mm256_extract_epi64(_mm256_maskload_epi64(numbers, mask), 1);
    pthread_mutex_unlock(&data->lock);
}
