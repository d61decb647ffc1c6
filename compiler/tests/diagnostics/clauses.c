// Each mistake in a clause is one error, which points at its token and names the clause. What is
// checked stands before the line that it is about; no other error or warning is printed. (Errors of
// types come when the function has been read.)
// RUN: not %durumcc -fsyntax-only -Wall -Wextra -ferror-limit=0 -fno-caret-diagnostics %s 2>&1 | \
// RUN:   sort -s -t: -k2,2n | %filecheck --implicit-check-not=error: --implicit-check-not=warning:
// RUN: not %durumcc -fsyntax-only -ferror-limit=0 -fdiagnostics-parseable-fixits %s 2>&1 | \
// RUN:   %filecheck --check-prefix=FIX
#include <nvl.h>

struct half;
struct pair {
    int x, y;
};
struct s {
    int a[10];
    int n;
    float f;
    unsigned bits : 3;
    nvl struct s *next;
    double m[4][5];
};
nvl_heap_t *open_it(void);
nvl struct s *find(void);

#define BAD backup(missing)
#define NOT_CLOSED backup(p->n
#define ITEM p
#define STRINGIFY(x) #x
#define TX(...) _Pragma(STRINGIFY(nvl atomic __VA_ARGS__))

void f(nvl_heap_t *h, nvl_heap_t *g, nvl_heap_t **hs, const nvl_heap_t *constant, void *any,
       nvl struct s *p, nvl int *a, nvl void *nv, nvl struct half *hf, int i, char *path,
       float number, struct pair pair) {
    int v[10] = {i};
    nvl int *rows[3] = {a};
    nvl_heap_t *two[2] = {h, g};
// CHECK: :[[#@LINE+1]]:13: error: unknown '#pragma nvl'; there is '#pragma nvl atomic heap(h)' [nvl-pragma]
#pragma nvl automic heap(h)
// FIX-DAG: {[[#@LINE-1]]:13-[[#@LINE-1]]:20}:"atomic"
// CHECK: :[[#@LINE+1]]:13: error: the transaction needs its heap: add heap(h), where h is what nvl_open gave [nvl-pragma-heap]
#pragma nvl atomic
// CHECK: :[[#@LINE+1]]:13: error: the transaction needs its heap: add heap(h), where h is what nvl_open gave [nvl-pragma-heap]
#pragma nvl atomic backup(p->n)
// CHECK: :[[#@LINE+1]]:24: error: expected '(' behind the name of the clause 'heap' [nvl-pragma-syntax]
#pragma nvl atomic heap
// CHECK: :[[#@LINE+1]]:25: error: expected '(' behind the name of the clause 'heap' [nvl-pragma-syntax]
#pragma nvl atomic heap h
// CHECK: :[[#@LINE+1]]:25: error: expected an item of the clause 'heap' [nvl-pragma-syntax]
#pragma nvl atomic heap()
// CHECK: :[[#@LINE+2]]:26: error: expected ')' of the clause 'heap' [nvl-pragma-syntax]
// CHECK: :[[#@LINE+1]]:24: note: to match this one
#pragma nvl atomic heap(h
// CHECK: :[[#@LINE+1]]:28: error: expected the name of a clause, or the end of the line [nvl-pragma-syntax]
#pragma nvl atomic heap(h) 7
// CHECK: :[[#@LINE+1]]:27: error: expected the name of a clause, or the end of the line [nvl-pragma-syntax]
#pragma nvl atomic heap(h);
// CHECK: :[[#@LINE+1]]:28: error: expected the name of a clause, or the end of the line [nvl-pragma-syntax]
#pragma nvl atomic heap(h) {
// CHECK: :[[#@LINE+1]]:27: error: expected the name of a clause, or the end of the line [nvl-pragma-syntax]
#pragma nvl atomic heap(h))
// CHECK: :[[#@LINE+1]]:27: error: expected an item of the clause 'heap' [nvl-pragma-syntax]
#pragma nvl atomic heap(h,)
// CHECK: :[[#@LINE+1]]:25: error: expected an item of the clause 'heap' [nvl-pragma-syntax]
#pragma nvl atomic heap(,h)
// CHECK: :[[#@LINE+1]]:40: error: expected an item of the clause 'backup' [nvl-pragma-syntax]
#pragma nvl atomic heap(h) backup(p->n,,p->f)
// CHECK: :[[#@LINE+1]]:28: error: unknown clause 'clobbr'; the clauses are heap, backup, clobber, readonly and default [nvl-pragma-clause]
#pragma nvl atomic heap(h) clobbr(p->a)
// CHECK: :[[#@LINE+1]]:20: error: unknown clause 'heep'; the clauses are heap, backup, clobber, readonly and default [nvl-pragma-clause]
#pragma nvl atomic heep(h)
// CHECK: :[[#@LINE+1]]:28: error: unknown clause 'private'; the clauses are heap, backup, clobber, readonly and default [nvl-pragma-clause]
#pragma nvl atomic heap(h) private(p->a)
// CHECK: :[[#@LINE+1]]:28: error: unknown clause 'private'; the clauses are heap, backup, clobber, readonly and default [nvl-pragma-clause]
#pragma nvl atomic heap(h) private
// CHECK: :[[#@LINE+1]]:28: error: unknown clause 'Backup'; the clauses are heap, backup, clobber, readonly and default [nvl-pragma-clause]
#pragma nvl atomic heap(h) Backup(p->n)
// FIX-DAG: {[[#@LINE-1]]:28-[[#@LINE-1]]:34}:"backup"
// CHECK: :[[#@LINE+2]]:28: error: there is a clause 'heap' already [nvl-pragma-twice]
// CHECK: :[[#@LINE+1]]:20: note: the first one is here
#pragma nvl atomic heap(h) heap(g)
// CHECK: :[[#@LINE+2]]:44: error: there is a clause 'default' already [nvl-pragma-twice]
// CHECK: :[[#@LINE+1]]:28: note: the first one is here
#pragma nvl atomic heap(h) default(backup) default(clobber)
// CHECK: :[[#@LINE+1]]:36: error: the clause 'default' is one of backup, clobber and readonly [nvl-pragma-default]
#pragma nvl atomic heap(h) default(none)
// CHECK: :[[#@LINE+1]]:36: error: the clause 'default' is one of backup, clobber and readonly [nvl-pragma-default]
#pragma nvl atomic heap(h) default(Clobber)
// FIX-DAG: {[[#@LINE-1]]:36-[[#@LINE-1]]:43}:"clobber"
// CHECK: :[[#@LINE+1]]:36: error: expected an item of the clause 'default' [nvl-pragma-syntax]
#pragma nvl atomic heap(h) default()
// CHECK: :[[#@LINE+1]]:44: error: the clause 'default' is one of backup, clobber and readonly [nvl-pragma-default]
#pragma nvl atomic heap(h) default(backup, clobber)
// CHECK: :[[#@LINE+1]]:43: error: expected ',' or ')' behind an item of the clause 'default' [nvl-pragma-syntax]
#pragma nvl atomic heap(h) default(backup clobber)
// CHECK: :[[#@LINE+1]]:35: error: expected '(' behind the name of the clause 'default' [nvl-pragma-syntax]
#pragma nvl atomic heap(h) default
// CHECK: :[[#@LINE+1]]:39: error: a section in the clause 'backup' is written a[first:count] [nvl-pragma-section]
#pragma nvl atomic heap(h) backup(a[1:])
// CHECK: :[[#@LINE+1]]:37: error: a section in the clause 'backup' is written a[first:count] [nvl-pragma-section]
#pragma nvl atomic heap(h) backup(a[:1])
// CHECK: :[[#@LINE+1]]:37: error: a section in the clause 'backup' is written a[first:count] [nvl-pragma-section]
#pragma nvl atomic heap(h) backup(a[:])
// CHECK: :[[#@LINE+1]]:37: error: expected expression, in the clause 'backup'
#pragma nvl atomic heap(h) backup(a[])
// CHECK: :[[#@LINE+1]]:35: error: a section in the clause 'backup' is written a[first:count] [nvl-pragma-section]
#pragma nvl atomic heap(h) backup([1:2])
// CHECK: :[[#@LINE+1]]:44: error: a section in the clause 'backup' is written a[first:count] [nvl-pragma-section]
#pragma nvl atomic heap(h) backup(p->a[1:2][3])
// CHECK: :[[#@LINE+1]]:44: error: a section in the clause 'backup' is written a[first:count] [nvl-pragma-section]
#pragma nvl atomic heap(h) backup(p->m[1:2][0:5])
// CHECK: :[[#@LINE+1]]:40: error: a section in the clause 'backup' is written a[first:count] [nvl-pragma-section]
#pragma nvl atomic heap(h) backup(a[1:2:3])
// CHECK: :[[#@LINE+1]]:36: error: a section in the clause 'backup' is written a[first:count] [nvl-pragma-section]
#pragma nvl atomic heap(h) backup(a:2)
// CHECK: :[[#@LINE+2]]:40: error: expected ']' of the clause 'backup' [nvl-pragma-syntax]
// CHECK: :[[#@LINE+1]]:36: note: to match this one
#pragma nvl atomic heap(h) backup(a[1:2)
// CHECK: :[[#@LINE+1]]:37: warning: left operand of comma operator has no effect [-Wunused-value]
#pragma nvl atomic heap(h) backup(a[1,2])
// CHECK: :[[#@LINE+1]]:39: error: the number of elements in the clause 'backup' is an integer from 0 on, and this is of the type 'double' [nvl-clause-count]
#pragma nvl atomic heap(h) backup(a[0:2.5])
// CHECK: :[[#@LINE+1]]:36: error: array subscript is not an integer, in the clause 'backup'
#pragma nvl atomic heap(h) backup(a[0.5:2])
// CHECK: :[[#@LINE+1]]:39: error: the number of elements in the clause 'backup' is an integer from 0 on, and this is of the type 'nvl struct s *' [nvl-clause-count]
#pragma nvl atomic heap(h) backup(a[0:p])
// CHECK: :[[#@LINE+1]]:36: error: array subscript is not an integer, in the clause 'backup'
#pragma nvl atomic heap(h) backup(a[p:2])
// CHECK: :[[#@LINE+1]]:39: error: the number of elements in the clause 'backup' is an integer from 0 on, and this is of the type 'struct pair' [nvl-clause-count]
#pragma nvl atomic heap(h) backup(a[0:pair])
// CHECK: :[[#@LINE+1]]:36: error: array subscript is not an integer, in the clause 'backup'
#pragma nvl atomic heap(h) backup(a[pair:2])
// CHECK: :[[#@LINE+1]]:39: error: the number of elements in the clause 'backup' is an integer from 0 on, and this is -1 [nvl-clause-count]
#pragma nvl atomic heap(h) backup(a[0:-1])
// CHECK: :[[#@LINE+1]]:39: error: subscripted value is not an array, pointer, or vector, in the clause 'backup'
#pragma nvl atomic heap(h) backup(p->n[0:1])
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is outside of it, of the type 'int' [nvl-clause-object]
#pragma nvl atomic heap(h) backup(i)
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is outside of it, of the type 'int' [nvl-clause-object]
#pragma nvl atomic heap(h) backup(v[1:2])
// CHECK: :[[#@LINE+2]]:35: error: the clause 'backup' takes objects in NVM, and this is the pointer itself, which is outside of it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:35: note: name what it leads to
#pragma nvl atomic heap(h) backup(p)
// FIX-DAG: {[[#@LINE-1]]:35-[[#@LINE-1]]:35}:"*"
// CHECK: :[[#@LINE+2]]:36: error: the clause 'clobber' takes objects in NVM, and this is the pointer itself, which is outside of it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:36: note: name what it leads to
#pragma nvl atomic heap(h) clobber(p, p->n)
// CHECK: :[[#@LINE+1]]:37: error: the clause 'readonly' takes objects in NVM, and this is outside of it, of the type 'nvl int *[3]' [nvl-clause-object]
#pragma nvl atomic heap(h) readonly(rows)
// CHECK: :[[#@LINE+2]]:35: error: the clause 'backup' takes objects in NVM, and this is the pointer itself, which is outside of it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:35: note: name what it leads to
#pragma nvl atomic heap(h) backup(a)
// CHECK: :[[#@LINE+2]]:35: error: the clause 'backup' takes objects in NVM, and this is a pointer into it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:35: note: leave out '&'
#pragma nvl atomic heap(h) backup(&p->n)
// FIX-DAG: {[[#@LINE-1]]:35-[[#@LINE-1]]:36}:""
// CHECK: :[[#@LINE+2]]:35: error: the clause 'backup' takes objects in NVM, and this is a pointer into it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:35: note: name what it leads to
#pragma nvl atomic heap(h) backup(find())
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is a value of the type 'int' [nvl-clause-object]
#pragma nvl atomic heap(h) backup(p->n + 1)
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is a value of the type 'int' [nvl-clause-object]
#pragma nvl atomic heap(h) backup(1)
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is outside of it, of the type 'char[2]' [nvl-clause-object]
#pragma nvl atomic heap(h) backup("x")
// CHECK: :[[#@LINE+2]]:35: error: the clause 'backup' takes objects in NVM, and this is a bit-field, which has no address [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:38: note: name the struct that it is in
#pragma nvl atomic heap(h) backup(p->bits)
// CHECK: :[[#@LINE+2]]:35: warning: ISO C does not allow indirection on operand of type 'nvl void *' [-Wvoid-ptr-dereference]
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is of the type 'void', whose size is not known [nvl-clause-object]
#pragma nvl atomic heap(h) backup(*nv)
// CHECK: :[[#@LINE+1]]:35: error: incomplete type 'struct half' where a complete type is required, in the clause 'backup'
#pragma nvl atomic heap(h) backup(*hf)
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is a function [nvl-clause-object]
#pragma nvl atomic heap(h) backup(f)
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is outside of it, of the type 'void *' [nvl-clause-object]
#pragma nvl atomic heap(h) backup(any)
// CHECK: :[[#@LINE+1]]:35: error: indirection requires pointer operand ('int' invalid), in the clause 'backup'
#pragma nvl atomic heap(h) backup(*i)
// CHECK: :[[#@LINE+1]]:35: error: use of undeclared identifier 'missing', in the clause 'backup'
#pragma nvl atomic heap(h) backup(missing)
// CHECK: :[[#@LINE+1]]:35: error: use of undeclared identifier 'missing', in the clause 'backup'
#pragma nvl atomic heap(h) backup(missing[0:3])
// CHECK: :[[#@LINE+1]]:37: error: use of undeclared identifier 'missing', in the clause 'backup'
#pragma nvl atomic heap(h) backup(a[missing:3])
// CHECK: :[[#@LINE+1]]:39: error: use of undeclared identifier 'missing', in the clause 'backup'
#pragma nvl atomic heap(h) backup(a[0:missing])
// CHECK: :[[#@LINE+1]]:38: error: no member named 'missing' in 'struct s', in the clause 'backup'
#pragma nvl atomic heap(h) backup(p->missing)
// CHECK: :[[#@LINE+1]]:38: error: expected identifier, in the clause 'backup'
#pragma nvl atomic heap(h) backup(p->)
// CHECK: :[[#@LINE+1]]:37: error: expected ',' or ')' behind an item of the clause 'backup' [nvl-pragma-syntax]
#pragma nvl atomic heap(h) backup(p n)
// CHECK: :[[#@LINE+1]]:38: error: expected expression, in the clause 'backup'
#pragma nvl atomic heap(h) backup(int)
// CHECK: :[[#@LINE+2]]:39: error: expected ')' of the clause 'backup' [nvl-pragma-syntax]
// CHECK: :[[#@LINE+1]]:34: note: to match this one
#pragma nvl atomic heap(h) backup(p->n; p->f)
// CHECK: :[[#@LINE+1]]:35: error: the clause 'backup' takes objects in NVM, and this is a value of the type 'int' [nvl-clause-object]
#pragma nvl atomic heap(h) backup(p->n = 1)
// CHECK: :[[#@LINE+4]]:35: error: use of undeclared identifier 'missing', in the clause 'backup'
// CHECK: :[[#@LINE+3]]:44: error: use of undeclared identifier 'missed', in the clause 'backup'
// CHECK: :[[#@LINE+2]]:52: error: the clause 'backup' takes objects in NVM, and this is the pointer itself, which is outside of it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:52: note: name what it leads to
#pragma nvl atomic heap(h) backup(missing, missed, p)
// CHECK: :[[#@LINE+3]]:35: error: use of undeclared identifier 'missing', in the clause 'backup'
// CHECK: :[[#@LINE+2]]:52: error: the clause 'clobber' takes objects in NVM, and this is the pointer itself, which is outside of it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:52: note: name what it leads to
#pragma nvl atomic heap(h) backup(missing) clobber(p)
// CHECK: :[[#@LINE+1]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'int' [nvl-clause-heap]
#pragma nvl atomic heap(i)
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'char *' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: open the heap before the transaction, and name its handle here
#pragma nvl atomic heap(path)
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'nvl struct s *' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: name the heap that it leads into, and the object in another clause
#pragma nvl atomic heap(p)
// CHECK: :[[#@LINE+1]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'struct pair' [nvl-clause-heap]
#pragma nvl atomic heap(pair)
#pragma nvl atomic heap(any)
// CHECK: :[[#@LINE+1]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'const nvl_heap_t *' [nvl-clause-heap]
#pragma nvl atomic heap(constant)
// CHECK: :[[#@LINE+1]]:25: error: use of undeclared identifier 'missing', in the clause 'heap'
#pragma nvl atomic heap(missing)
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'nvl_heap_t *(void)' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: open the heap before the transaction, and name its handle here
#pragma nvl atomic heap(open_it)
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'nvl_heap_t *(const char *)' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: open the heap before the transaction, and name its handle here
#pragma nvl atomic heap(nvl_open)
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'nvl_heap_t *[2]' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: name each heap of the array by itself
#pragma nvl atomic heap(two)
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'nvl_heap_t **' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: name what it leads to
#pragma nvl atomic heap(hs)
// FIX-DAG: {[[#@LINE-1]]:25-[[#@LINE-1]]:25}:"*"
// CHECK: :[[#@LINE+1]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is null [nvl-clause-heap]
#pragma nvl atomic heap(0)
// CHECK: :[[#@LINE+1]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is null [nvl-clause-heap]
#pragma nvl atomic heap(NULL)
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'char[5]' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: open the heap before the transaction, and name its handle here
#pragma nvl atomic heap("path")
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'nvl_heap_t **' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: leave out '&'
#pragma nvl atomic heap(&h)
// FIX-DAG: {[[#@LINE-1]]:25-[[#@LINE-1]]:26}:""
// CHECK: :[[#@LINE+1]]:25: error: argument type 'nvl_heap_t' (aka 'struct __nvl_heap') is incomplete, in the clause 'heap'
#pragma nvl atomic heap(*h)
// CHECK: :[[#@LINE+1]]:25: error: unexpected type name 'nvl_heap_t': expected expression, in the clause 'heap'
#pragma nvl atomic heap(nvl_heap_t)
// CHECK: :[[#@LINE+1]]:28: error: expected ']' of the clause 'heap' [nvl-pragma-syntax]
#pragma nvl atomic heap(h[0:1])
// CHECK: :[[#@LINE+1]]:28: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'int' [nvl-clause-heap]
#pragma nvl atomic heap(h, i, g)
// CHECK: :[[#@LINE+3]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'int' [nvl-clause-heap]
// CHECK: :[[#@LINE+2]]:28: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'char *' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:28: note: open the heap before the transaction, and name its handle here
#pragma nvl atomic heap(i, path)
// CHECK: :[[#@LINE+2]]:25: error: use of undeclared identifier 'missing', in the clause 'heap'
// CHECK: :[[#@LINE+1]]:34: error: use of undeclared identifier 'missed', in the clause 'heap'
#pragma nvl atomic heap(missing, missed)
// CHECK: :[[#@LINE+1]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'float' [nvl-clause-heap]
#pragma nvl atomic heap(number)
// CHECK: :[[#@LINE+2]]:25: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'nvl struct s *' [nvl-clause-heap]
// CHECK: :[[#@LINE+1]]:25: note: name the heap that it leads into, and the object in another clause
#pragma nvl atomic heap(find())
// CHECK: :[[#@LINE+1]]:28: error: use of undeclared identifier 'missing', in the clause 'backup'
#pragma nvl atomic heap(h) BAD
// CHECK: :[[#@LINE+2]]:38: error: expected ')' of the clause 'backup' [nvl-pragma-syntax]
// CHECK: :[[#@LINE+1]]:28: note: to match this one
#pragma nvl atomic heap(h) NOT_CLOSED
// CHECK: :[[#@LINE+2]]:35: error: the clause 'backup' takes objects in NVM, and this is the pointer itself, which is outside of it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:35: note: name what it leads to
#pragma nvl atomic heap(h) backup(ITEM)
// CHECK: :[[#@LINE+1]]:5: error: the clause 'heap' takes the 'nvl_heap_t *' that nvl_open gave, and this is of the type 'int' [nvl-clause-heap]
    TX(heap(i))
// CHECK: :[[#@LINE+2]]:5: error: the clause 'backup' takes objects in NVM, and this is the pointer itself, which is outside of it [nvl-clause-object]
// CHECK: :[[#@LINE+1]]:5: note: name what it leads to
    TX(heap(h) backup(p))
// CHECK: :[[#@LINE+1]]:5: error: unknown clause 'bakup'; the clauses are heap, backup, clobber, readonly and default [nvl-pragma-clause]
    TX(heap(h) bakup(p->n))
// CHECK: :[[#@LINE+1]]:5: error: use of undeclared identifier 'missing', in the clause 'backup'
    TX(heap(h) backup(missing))
    p->n = v[0];
    (void)rows, (void)two, (void)hs, (void)nv, (void)hf, (void)path, (void)number, (void)pair;
    (void)constant, (void)any;
}
