/* Mistakes that must not compile, one for each CASE, with the words that the compiler says. Where
 * they are ours, nothing else is an error. CASE 0 compiles. */
#include <durum.h>
#include <durum.h>

#ifndef CASE
#define CASE 0
#endif

typedef struct node {
    uint64_t value;
    struct node *next;
    uint64_t numbers[3];
    struct {
        int x;
    } inner;
} node;
DURUM_TYPE(node, DURUM_FIELD(value), DURUM_PTR(next))

typedef struct list {
    node *head;
    uint64_t length;
    node first;
    node row[2];
    node *ends[2];
    char word[8];
    union {
        int x;
        char y;
    } either;
    uint16_t tail[];
} list;

typedef struct index {
    uint64_t length;
    node *nodes[];
} index;

#if CASE == 1 // durum: DURUM_FIELD is for a number; a pointer is DURUM_PTR
DURUM_TYPE(list, DURUM_FIELD(head))
#elif CASE == 2  // durum: DURUM_PTR is for a pointer; a number is DURUM_FIELD
DURUM_TYPE(list, DURUM_PTR(length))
#elif CASE == 3  // durum: DURUM_PTR_TO is for a pointer to the type that it names
DURUM_TYPE(list, DURUM_PTR_TO(head, list))
#elif CASE == 4  // durum: DURUM_FIELD is for a number; a pointer is DURUM_PTR
DURUM_TYPE(list, DURUM_FIELD(first))
#elif CASE == 5  // durum: DURUM_STRUCT is for a struct of the type that it names
DURUM_TYPE(list, DURUM_STRUCT(first, list))
#elif CASE == 6  // no member named
DURUM_TYPE(list, DURUM_FIELD(tails))
#elif CASE == 7  // durum: DURUM_FIELD is for a number; a pointer is DURUM_PTR
DURUM_TYPE(list, DURUM_FIELD(word))
#elif CASE == 9  // durum: DURUM_ARRAY is for an array of numbers
DURUM_TYPE(list, DURUM_ARRAY(length))
#elif CASE == 10 // durum: DURUM_ARRAY is for an array of numbers
DURUM_TYPE(list, DURUM_ARRAY(first))
#elif CASE == 11 // durum: DURUM_ARRAY is for an array of numbers
DURUM_TYPE(list, DURUM_ARRAY(ends))
#elif CASE == 12 // durum: DURUM_PTR is for a pointer; a number is DURUM_FIELD, an array DURUM_ARRAY
DURUM_TYPE(list, DURUM_PTR(word))
#elif CASE == 13 // durum: DURUM_PTR is for a pointer; a number is DURUM_FIELD
DURUM_TYPE(list, DURUM_PTR(first))
#elif CASE == 14 // durum: DURUM_PTR_TO is for a pointer to the type that it names
DURUM_TYPE(list, DURUM_PTR_TO(row, node))
#elif CASE == 15 // durum: DURUM_PTR_ARRAY_TO is for an array of pointers
DURUM_TYPE(list, DURUM_PTR_ARRAY_TO(head, node))
#elif CASE == 16 // durum: DURUM_PTR_ARRAY_TO is for an array of pointers
DURUM_TYPE(list, DURUM_PTR_ARRAY_TO(row, node))
#elif CASE == 17 // durum: DURUM_STRUCT_ARRAY is for an array of structs
DURUM_TYPE(list, DURUM_STRUCT_ARRAY(head, node))
#elif CASE == 18 // durum: DURUM_STRUCT_ARRAY is for an array of structs
DURUM_TYPE(list, DURUM_STRUCT_ARRAY(first, node))
#elif CASE == 19 // durum: DURUM_TAIL is for a flexible array member of numbers
DURUM_TYPE(index, DURUM_FIELD(length), DURUM_TAIL(nodes))
#elif CASE == 20 // durum: DURUM_PTR_TAIL_TO is for a flexible array member of pointers
DURUM_TYPE(list, DURUM_FIELD(length), DURUM_PTR_TAIL_TO(tail, node))
#elif CASE == 21 // durum: DURUM_FIELD is for a number; a pointer is DURUM_PTR
DURUM_TYPE(list, DURUM_FIELD(either))
#elif CASE == 22 // durum: DURUM_STRUCT is for a struct of the type that it names
DURUM_TYPE(list, DURUM_STRUCT(head, node))
#else
DURUM_TYPE(list, DURUM_PTR_TO(head, node), DURUM_FIELD(length), DURUM_STRUCT(first, node),
           DURUM_STRUCT_ARRAY(row, node), DURUM_PTR_ARRAY_TO(ends, node), DURUM_ARRAY(word),
           DURUM_BYTES(either), DURUM_TAIL(tail))
DURUM_TYPE(index, DURUM_FIELD(length), DURUM_PTR_TAIL_TO(nodes, node))
#endif

#if CASE == 8 // warn_unused_result
void store(list *l);
void store(list *l) {
    durum_tx_add(l, sizeof(*l));
    l->length = 1;
}
#endif

int main(void) {
    return 0;
}
