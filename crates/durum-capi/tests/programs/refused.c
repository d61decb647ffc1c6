/* What the macros must not let through. Without a CASE this compiles; with each of them it must
 * not. */
#include <durum.h>

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
} list;

#if CASE == 1 /* a pointer is no number */
DURUM_TYPE(list, DURUM_FIELD(head))
#elif CASE == 2 /* a number is no pointer */
DURUM_TYPE(list, DURUM_PTR(length))
#elif CASE == 3 /* a pointer to something else */
DURUM_TYPE(list, DURUM_PTR_TO(head, list))
#elif CASE == 4 /* a struct is no number */
DURUM_TYPE(list, DURUM_FIELD(first))
#elif CASE == 5 /* another struct */
DURUM_TYPE(list, DURUM_STRUCT(first, list))
#elif CASE == 6 /* no such field */
DURUM_TYPE(list, DURUM_FIELD(tail))
#elif CASE == 7 /* an array is no number */
typedef struct array {
    uint64_t numbers[3];
} array;
DURUM_TYPE(array, DURUM_FIELD(numbers))
#else
DURUM_TYPE(list, DURUM_PTR_TO(head, node), DURUM_FIELD(length), DURUM_STRUCT(first, node))
#endif

#if CASE == 8 /* what add says must be looked at: an error here, with -Werror */
void store(list *l);
void store(list *l) {
    durum_tx_add(l, sizeof(*l));
    l->length = 1;
}
#endif

int main(void) {
    return 0;
}
