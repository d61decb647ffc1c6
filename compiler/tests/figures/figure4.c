// The matrix multiply of the paper, Figure 4, as it is printed there.
// RUN: %durumcc -fsyntax-only -Wall -Wextra -Werror -DI=8 -DJ=4 -DK=6 -DN=2 %s
// RUN: %ir -O0 -DI=8 -DJ=4 -DK=6 -DN=2 | %filecheck
// RUN: %ir -O1 -DI=8 -DJ=4 -DK=6 -DN=2 | %filecheck
// RUN: %ir -O2 -DI=8 -DJ=4 -DK=6 -DN=2 | %filecheck
// RUN: %ir -O3 -DI=8 -DJ=4 -DK=6 -DN=2 | %filecheck
#include <nvl.h>
void matmul(nvl_heap_t *heap, nvl float a[I][J],
           nvl float b[I][K], nvl float c[K][J],
           nvl int *i) {
    while (*i < I) {
        #pragma nvl atomic heap(heap) clobber(a[*i:N])
        for (int ii=0; ii<N; ++ii, ++i) {
            for (int j=0; j<J; ++j) {
                float sum = 0.0;
               for (int k=0; k<K; ++k)
                   sum += b[*i][k] * c[k][j];
               a[*i][j] = sum;
           }
       }
   }
}
// CHECK: define {{.*}}void @matmul(ptr {{.*}}, ptr addrspace(1) {{.*}}, ptr addrspace(1) {{.*}}, ptr addrspace(1) {{.*}}, ptr addrspace(1)
// CHECK: call void @__nvl_tx_begin(
// The rows from *i on, N of them, 4 floats each.
// CHECK: call void @__nvl_tx_range(ptr noundef {{.*}}, i32 noundef 2, ptr addrspace(1) noundef {{.*}}, i64 noundef 2, i64 noundef 16)
// CHECK-DAG: store float {{.*}}, ptr addrspace(1)
// CHECK-DAG: call void @__nvl_tx_end(
