/* A linked list with hybrid logging, after Figure 8 of the Puddles paper.
 *
 *     list_hybrid STORE append COUNT    appends COUNT values; prints the last one after each commit
 *     list_hybrid STORE check           follows the list and checks it; prints its length
 *
 * Undo logging protects the next pointer, which is changed in place: the log entry has to be
 * durable before. Redo logging defers the new tail: it is written to the log only, and reaches its
 * place when the transaction commits.
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
} list;
DURUM_TYPE(list, DURUM_PTR_TO(head, node), DURUM_PTR_TO(tail, node))

static int append(durum_pool *pool, list *l, uint64_t value) {
    DURUM_TX_BEGIN(pool) {
        node *n = DURUM_TX_NEW(pool, node);
        n->value = value;
        if (l->tail == NULL) {
            DURUM_TX_REDO_SET(&l->head, n);
        } else {
            DURUM_TX_ADD(&l->tail->next); /* undo: the old value is in the log ... */
            l->tail->next = n;            /* ... so the place may change */
        }
        DURUM_TX_REDO_SET(&l->tail, n); /* redo: l->tail is still the old one here */
    }
    DURUM_TX_ONABORT {
        return durum_errorcode();
    }
    DURUM_TX_END
    return DURUM_OK;
}

/* 0 if values count from 0 and the tail is the last node. */
static int check(const list *l) {
    uint64_t length = 0;
    const node *last = NULL;
    for (const node *n = l->head; n != NULL; n = n->next) {
        if (n->value != length++) {
            fprintf(stderr, "the value %llu is out of order\n", (unsigned long long)n->value);
            return 1;
        }
        last = n;
    }
    if (last != l->tail) {
        fprintf(stderr, "the tail is not the last node\n");
        return 1;
    }
    printf("%llu\n", (unsigned long long)length);
    return 0;
}

static int run(durum_pool *pool, list *l, int argc, char **argv) {
    if (argc == 3 && strcmp(argv[2], "check") == 0) {
        return check(l);
    }
    if (argc != 4 || strcmp(argv[2], "append") != 0) {
        fprintf(stderr, "usage: %s STORE append COUNT | check\n", argv[0]);
        return 2;
    }
    for (unsigned long long left = strtoull(argv[3], NULL, 10); left > 0; left--) {
        uint64_t value = l->tail == NULL ? 0 : l->tail->value + 1;
        if (append(pool, l, value) != DURUM_OK) {
            fprintf(stderr, "append: %s\n", durum_errormsg());
            return 1;
        }
        printf("%llu\n", (unsigned long long)value + 1);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv) {
    durum_store *store = durum_store_open_or_create(argc > 1 ? argv[1] : "list.store", NULL);
    durum_pool *pool = durum_pool_open_or_create(store, "hybrid list", NULL);
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
