/* A linked list that grows at its end, after Figure 4 of the Puddles paper.
 *
 *     list_append STORE append COUNT    appends COUNT values; prints the length after each commit
 *     list_append STORE check           follows the list and checks it; prints its length
 *     list_append STORE clear           frees all nodes in one transaction
 *
 * Kill it whenever you like: the list is whole, and as long as it last said or one node longer.
 */
#include <durum.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct node {
    uint64_t value;
    struct node *next;
} node;
DURUM_TYPE(node, DURUM_FIELD(value), DURUM_PTR(next))

typedef struct list {
    node *head;
    node *tail;
    uint64_t length;
} list;
DURUM_TYPE(list, DURUM_PTR_TO(head, node), DURUM_PTR_TO(tail, node), DURUM_FIELD(length))

/* Appends a node. DURUM_OK, or the code of what failed; the list is as before then. */
static int append(durum_pool *pool, list *l, uint64_t value) {
    DURUM_TX_BEGIN(pool) {
        node *n = DURUM_TX_NEW(pool, node);
        n->value = value; /* new objects need no DURUM_TX_ADD */
        n->next = NULL;
        if (l->tail == NULL) {
            DURUM_TX_ADD(&l->head);
            l->head = n;
        } else {
            DURUM_TX_ADD(&l->tail->next);
            l->tail->next = n;
        }
        DURUM_TX_ADD(&l->tail);
        l->tail = n;
        DURUM_TX_ADD(&l->length);
        l->length += 1;
    }
    DURUM_TX_ONABORT {
        return durum_errorcode();
    }
    DURUM_TX_END
    return DURUM_OK;
}

/* Frees all nodes, or none. */
static int clear(durum_pool *pool, list *l) {
    DURUM_TX_BEGIN(pool) {
        for (node *n = l->head; n != NULL; n = n->next) {
            DURUM_TX_FREE(n); /* keeps its contents until the commit */
        }
        DURUM_TX_ADD(l);
        memset(l, 0, sizeof(*l));
    }
    DURUM_TX_ONABORT {
        return durum_errorcode();
    }
    DURUM_TX_END
    return DURUM_OK;
}

/* Follows the list. 0 if values are in order, and tail and length are right. */
static int check(const list *l) {
    uint64_t length = 0;
    const node *last = NULL;
    for (const node *n = l->head; n != NULL; n = n->next) {
        if (n->value != length) {
            fprintf(stderr, "node %llu holds %llu\n", (unsigned long long)length,
                    (unsigned long long)n->value);
            return 1;
        }
        length += 1;
        last = n;
    }
    if (last != l->tail || length != l->length) {
        fprintf(stderr, "%llu nodes, but the length is %llu, or the tail is another node\n",
                (unsigned long long)length, (unsigned long long)l->length);
        return 1;
    }
    printf("%llu\n", (unsigned long long)length);
    return 0;
}

static int run(durum_pool *pool, list *l, int argc, char **argv) {
    if (argc == 4 && strcmp(argv[2], "append") == 0) {
        for (unsigned long long left = strtoull(argv[3], NULL, 10); left > 0; left--) {
            if (append(pool, l, l->length) != DURUM_OK) {
                fprintf(stderr, "append: %s\n", durum_errormsg());
                return 1;
            }
            printf("%llu\n", (unsigned long long)l->length);
            fflush(stdout); /* only what is durable is said */
        }
        return 0;
    }
    if (argc == 3 && strcmp(argv[2], "check") == 0) {
        return check(l);
    }
    if (argc == 3 && strcmp(argv[2], "clear") == 0) {
        return clear(pool, l) == DURUM_OK ? 0 : 1;
    }
    fprintf(stderr, "usage: %s STORE append COUNT | check | clear\n", argv[0]);
    return 2;
}

int main(int argc, char **argv) {
    durum_store *store = durum_store_open_or_create(argc > 1 ? argv[1] : "list.store", NULL);
    durum_pool *pool = durum_pool_open_or_create(store, "list", NULL);
    list *l = DURUM_ROOT(pool, list);
    int status = 1;
    if (l != NULL) {
        status = run(pool, l, argc, argv);
    } else {
        fprintf(stderr, "%s\n", durum_errormsg());
    }
    durum_pool_close(pool);
    durum_store_close(store);
    return status;
}
