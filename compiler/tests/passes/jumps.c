// Behind setjmp levels are rolled back that a jump has left.
// RUN: %lowered -O0 | %filecheck
// RUN: %lowered -O2 | %filecheck
#include <nvl.h>
#include <setjmp.h>
#include <unistd.h>

jmp_buf buffer;
// CHECK-LABEL: @f(
// CHECK: %[[PLACE:.*]] = {{.*}}call ptr @__nvl_tx_depth()
// CHECK: %[[DEPTH:.*]] = load i32, ptr %[[PLACE]]
// CHECK: %[[R:.*]] = call i32 @_setjmp(
// CHECK: br i1
// CHECK: call void @__nvl_tx_unwind(i32 {{.*}}%[[DEPTH]])
int f(void) { return setjmp(buffer); }
// CHECK-LABEL: @g(
// CHECK-NOT: __nvl_tx_unwind
// CHECK: ret
int g(void) { return vfork(); }
