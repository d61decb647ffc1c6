/* Local variables around blocks. Right programs compile without a warning, whatever the compiler,
 * and find in their locals behind an abort what they have put there. */
#include "check.h"

/* Loops around blocks, whose variables change between two of them. */

static int adds_to_each(durum_pool *pool, cell *c, int times, int *failed) {
    int added = 0;
    for (int i = 0; i < times; i++) {
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(c);
            c->value += (uint64_t)i;
            if (i % 3 == 2) {
                durum_tx_abort();
            }
        }
        DURUM_TX_ONABORT {
            *failed += 1;
        }
        DURUM_TX_END
        if (durum_errorcode() == DURUM_OK) {
            added += i;
        }
    }
    return added;
}

static cell *goes_along(durum_pool *pool, cell *at, uint64_t by) {
    cell *last = NULL;
    while (at != NULL) {
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(&at->value);
            at->value += by;
        }
        DURUM_TX_END
        last = at;
        at = at->next;
    }
    return last;
}

static int tries_again(durum_pool *pool, cell *c, int good) {
    int tries = 0, code = DURUM_OK;
    do {
        tries++;
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(c);
            c->other = (uint64_t)tries;
            if (tries < good) {
                durum_tx_abort();
            }
        }
        DURUM_TX_END
        code = durum_errorcode();
    } while (code != DURUM_OK && tries < 10);
    return code == DURUM_OK ? tries : -1;
}

static const char *chooses(durum_pool *pool, cell *c, int which) {
    const char *name = "none";
    cell *wanted = c;
    if (which == 1) {
        name = "next";
        wanted = c->next;
    } else if (which == 2) {
        name = "self";
    }
    if (wanted == NULL) {
        return name;
    }
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(wanted);
        wanted->value = (uint64_t)which;
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(&c->other);
            c->other = wanted->value;
        }
        DURUM_TX_END
    }
    DURUM_TX_ONABORT {
        name = "aborted";
    }
    DURUM_TX_END
    return name;
}

static void locals_change_around_blocks(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    int failed = 0;
    CHECK(adds_to_each(f.pool, root, 10, &failed) == 0 + 1 + 3 + 4 + 6 + 7 + 9);
    CHECK(failed == 3 && root->value == 30);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(root);
        root->next = DURUM_TX_NEW(f.pool, cell);
    }
    DURUM_TX_END
    CHECK(goes_along(f.pool, root, 5) == root->next);
    CHECK(root->value == 35 && root->next->value == 5);
    CHECK(tries_again(f.pool, root, 4) == 4 && root->other == 4);
    CHECK(tries_again(f.pool, root, 11) == -1 && root->other == 4);
    CHECK(strcmp(chooses(f.pool, root, 1), "next") == 0);
    CHECK(strcmp(chooses(f.pool, root, 2), "self") == 0);
    CHECK(root->value == 2 && root->other == 2 && root->next->value == 1);
    fixture_close(&f);
}

/* What a block has changed before it aborts. clang keeps that in volatile variables only. */
#ifdef __clang__
#define CHANGES volatile
#else
#define CHANGES
#endif

static void locals_that_a_block_changes_are_there_behind_an_abort(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    for (int rounds = 0; rounds < 20; rounds++) {
        CHANGES int steps = 0;
        CHANGES double half = 0;
        CHANGES uint64_t sum = 1;
        DURUM_TX_BEGIN(f.pool) {
            DURUM_TX_ADD(root);
            for (int i = 0; i < rounds; i++) {
                steps++;
                half += 0.5;
                sum = sum * 31 + (uint64_t)i;
                root->value = sum;
            }
            if (rounds % 2 == 0) {
                DURUM_TX_ADD(&f);
            }
            durum_tx_abort();
        }
        DURUM_TX_ONABORT {
            uint64_t expected = 1;
            for (int i = 0; i < rounds; i++) {
                expected = expected * 31 + (uint64_t)i;
            }
            CHECK(steps == rounds && half == rounds * 0.5 && sum == expected);
            steps += 100;
        }
        DURUM_TX_END
        CHECK(steps == rounds + 100 && root->value == 0);
    }
    fixture_close(&f);
}

const test local_tests[] = {
    {"locals_change_around_blocks", locals_change_around_blocks},
    {"locals_that_a_block_changes_are_there_behind_an_abort",
     locals_that_a_block_changes_are_there_behind_an_abort},
    {NULL, NULL},
};
