// A format that writes to where its arguments lead makes another call of it, which was not compiled for sections; so
// does one that only the run knows.
// RUN: %simulated/bin/durumcc -fido -O1 -w -S -emit-llvm %s -o - | %filecheck
#include <pthread.h>
#include <stdio.h>

struct data {
    pthread_mutex_t lock;
    char text[64];
    int length;
};

#define WRITES(name, format)                                                                                              \
    void name(struct data *data, long value, const char *given) {                                                         \
        pthread_mutex_lock(&data->lock);                                                                                   \
        snprintf(data->text, sizeof data->text, format, value, &data->length);                                             \
        pthread_mutex_unlock(&data->lock);                                                                                 \
    }

// CHECK-LABEL: define {{.*}}@plain(
// CHECK-NOT: @__durum_section.snprintf
// CHECK: call {{.*}}@snprintf
WRITES(plain, "%%n %-8.3ld%p")
// CHECK-LABEL: define {{.*}}@width(
// CHECK-NOT: @__durum_section.snprintf
// CHECK: call {{.*}}@snprintf
WRITES(width, "%w64dns %wf32xn%p")
// CHECK-LABEL: define {{.*}}@counts(
// CHECK: @__durum_section.snprintf
WRITES(counts, "%ld%n")
// CHECK-LABEL: define {{.*}}@by_number(
// CHECK: @__durum_section.snprintf
WRITES(by_number, "%1$ld%2$hhn")
// CHECK-LABEL: define {{.*}}@digits(
// CHECK: @__durum_section.snprintf
WRITES(digits, "%Id%In")
// CHECK-LABEL: define {{.*}}@of_width(
// CHECK: @__durum_section.snprintf
WRITES(of_width, "%ld%w32n")
// CHECK-LABEL: define {{.*}}@of_fast_width(
// CHECK: @__durum_section.snprintf
WRITES(of_fast_width, "%ld%wf32n")
// CHECK-LABEL: define {{.*}}@unknown(
// CHECK: @__durum_section.snprintf
WRITES(unknown, given)
