/* Functions, constants and locks that sections may point to are told by names that last: what is called only is not, nor what
 * only code outside of sections refers to. Constants that only the module knows have room around them.
 *
 * RUN: %durumcc -fido -O2 -Wall -Wextra -Werror -S -emit-llvm %s -o - | FileCheck %s
 * RUN: %durumcc -fido -O2 -g -S -emit-llvm %s -o - | FileCheck --check-prefixes=CHECK,DEBUG %s
 */
#include <nv.h>
#include <pthread.h>

struct root {
    pthread_mutex_t lock;
    unsigned long number;
};

/* CHECK: @elsewhere = external constant
 * CHECK: = private {{.*}}constant [12 x i8] c"not told of\00"
 * CHECK: @steps = internal {{.*}}constant { [16 x i8], [2 x ptr], [1 x i8] } { [16 x i8] zeroinitializer, [2 x ptr] [ptr @one, ptr @two], [1 x i8] zeroinitializer }, align 16
 * CHECK: @[[WORDS:.*]] = private {{.*}}constant { [1 x i8], [8 x i8], [1 x i8] } { [1 x i8] zeroinitializer, [8 x i8] c"the one\00", [1 x i8] zeroinitializer }
 * CHECK: @__durum_ido_addresses = private constant [6 x { ptr, i64, i64 }]
 * CHECK-SAME: { ptr @two, i64 1, i64 {{[0-9]+}} }, { ptr, i64, i64 } { ptr @one, i64 1, i64 {{[0-9]+}} }
 * CHECK-SAME: { ptr getelementptr inbounds ({ [16 x i8], [2 x ptr], [1 x i8] }, ptr @steps, i32 0, i32 1), i64 17, i64 {{[0-9]+}} }
 * CHECK-SAME: { ptr @locks, i64 80, i64 {{[0-9]+}} }
 * CHECK-SAME: { ptr getelementptr inbounds ({ [1 x i8], [8 x i8], [1 x i8] }, ptr @[[WORDS]], i32 0, i32 1), i64 9, i64 {{[0-9]+}} }
 * DEBUG: !DIExpression(DW_OP_plus_uconst, 16)
 */
extern const char elsewhere[];
static unsigned long one(unsigned long number) {
    return number + 1;
}
static unsigned long two(unsigned long number) {
    return number + 2;
}
static unsigned long (*const steps[2])(unsigned long) = {one, two};
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

__attribute__((noinline)) static unsigned long length(const char *words) {
    unsigned long number = 0;
    while (words[number])
        number++;
    return number;
}

void count(struct root *root, int which) {
    const char *words = which ? "the one" : "another";
    if (which == 2)
        words = elsewhere;
    pthread_mutex_lock(&locks[which & 1]);
    root->number = steps[which & 1](root->number);
    root->number += length(words);
    pthread_mutex_unlock(&locks[which & 1]);
}

const char *outside(void) {
    return "not told of";
}
