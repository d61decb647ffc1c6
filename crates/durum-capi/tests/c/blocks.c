/* DURUM_TX_BEGIN blocks: their ends, their aborts, and what leaves them too early. */
#include "check.h"

static char reported[512];

static void report(const char *message) {
    snprintf(reported, sizeof(reported), "%s", message);
}

static void a_block_commits_at_its_end(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    int aborted = 0;
    DURUM_TX_BEGIN(f.pool) {
        CHECK(durum_tx_level() == 1);
        DURUM_TX_ADD(&root->value);
        DURUM_TX_ADD(&root->next);
        root->value = 1;
        DURUM_TX_REDO_SET(&root->other, 2);
        cell *n = DURUM_TX_NEW(f.pool, cell);
        n->value = 3;
        DURUM_TX_CLOBBER(&n->other);
        root->next = n;
        CHECK(root->other == 0);
    }
    DURUM_TX_ONABORT {
        aborted = 1;
    }
    DURUM_TX_END
    CHECK(!aborted && durum_tx_level() == 0 && durum_errorcode() == DURUM_OK);
    CHECK(root->value == 1 && root->other == 2 && root->next->value == 3);
    fixture_close(&f);
}

static void add_and_set_of_one_place_abort_the_block(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    volatile int code = 0;
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_REDO_SET(&root->other, 2);
        DURUM_TX_ADD(root);
        CHECK(0);
    }
    DURUM_TX_ONABORT {
        code = durum_errorcode();
    }
    DURUM_TX_END
    CHECK_CODE(code, DURUM_E_PENDING_SET);
    CHECK(root->other == 0);
    fixture_close(&f);
}

static void an_abort_restores_before_onabort_runs(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    volatile int runs = 0;
    static uint64_t cached = 10;
    DURUM_TX_BEGIN(f.pool) {
        runs++;
        DURUM_TX_ADD(root);
        DURUM_TX_VOLATILE(&cached);
        root->value = 5;
        cached = 11;
        root->next = DURUM_TX_NEW(f.pool, cell);
        durum_tx_abort();
        CHECK(0);
    }
    DURUM_TX_ONABORT {
        CHECK(root->value == 0 && root->next == NULL && cached == 10);
        CHECK(durum_tx_level() == 0);
        CHECK_CODE(durum_errorcode(), DURUM_E_ABORTED);
        CHECK(strlen(durum_errormsg()) > 0);
        runs += 10;
    }
    DURUM_TX_END
    CHECK(runs == 11);
    /* Nothing is left behind: the next block works. */
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(root);
        root->value = 6;
    }
    DURUM_TX_END
    CHECK(root->value == 6 && durum_errorcode() == DURUM_OK);
    fixture_close(&f);
}

static void without_onabort_the_code_tells(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(root);
        root->value = 5;
        durum_tx_abort();
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_E_ABORTED);
    CHECK(root->value == 0);
    fixture_close(&f);
}

static void failing_macros_abort_with_their_code(void) {
    fixture f = fixture_new();
    int local = 0;
    volatile int code = 0;
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(&local);
        CHECK(0);
    }
    DURUM_TX_ONABORT {
        code = durum_errorcode();
    }
    DURUM_TX_END
    CHECK_CODE(code, DURUM_E_NOT_IN_POOL);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_FREE(&local);
        CHECK(0);
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_E_NOT_IN_POOL);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_NEW(NULL, cell);
        CHECK(0);
    }
    DURUM_TX_END
    CHECK(durum_errorcode() != DURUM_OK);
    fixture_close(&f);
}

static void a_block_that_cannot_begin_runs_onabort_only(void) {
    volatile int runs = 0;
    DURUM_TX_BEGIN(NULL) {
        CHECK(0);
    }
    DURUM_TX_ONABORT {
        CHECK_CODE(durum_errorcode(), DURUM_E_ARGUMENT);
        runs = 1;
    }
    DURUM_TX_END
    CHECK(runs == 1 && durum_tx_level() == 0);
}

static void add_in_a_function(cell *c) {
    DURUM_TX_ADD(c);
    c->value += 1;
    if (c->value > 2) {
        durum_tx_abort(); /* goes on in the caller's block */
    }
}

static void an_abort_in_a_called_function_reaches_the_block(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    volatile int calls = 0;
    DURUM_TX_BEGIN(f.pool) {
        for (;;) {
            calls++;
            add_in_a_function(root);
        }
    }
    DURUM_TX_ONABORT {
        calls += 100;
    }
    DURUM_TX_END
    CHECK(calls == 103 && root->value == 0);
    fixture_close(&f);
}

static void an_inner_block_is_part_of_the_outer_one(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(root);
        root->value = 1;
        DURUM_TX_BEGIN(f.pool) {
            CHECK(durum_tx_level() == 2);
            root->other = 1;
        }
        DURUM_TX_END
        CHECK(durum_tx_level() == 1);
    }
    DURUM_TX_END
    CHECK(root->value == 1 && root->other == 1);
    fixture_close(&f);
}

static void an_inner_abort_aborts_the_outer_block(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    volatile int inner = 0, outer = 0;
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(root);
        root->value = 1;
        DURUM_TX_BEGIN(f.pool) {
            root->other = 1;
            durum_tx_abort();
        }
        DURUM_TX_ONABORT {
            inner = 1;
            CHECK(durum_tx_level() == 1);
        }
        DURUM_TX_END
        CHECK(0);
    }
    DURUM_TX_ONABORT {
        outer = 1;
        CHECK_CODE(durum_errorcode(), DURUM_E_ABORTED);
        CHECK(root->value == 0 && root->other == 0);
    }
    DURUM_TX_END
    CHECK(inner == 1 && outer == 1 && durum_tx_level() == 0);
    fixture_close(&f);
}

static int changes_and_gives_up(durum_pool *pool, cell *c) {
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(c);
        c->value = 9;
        durum_tx_abort();
    }
    DURUM_TX_ONABORT {
        return durum_errorcode();
    }
    DURUM_TX_END
    return DURUM_OK;
}

static void a_return_from_an_inner_onabort_leaves_the_outer_block_doomed(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    volatile int went_on = 0, aborted = 0;
    CHECK_CODE(changes_and_gives_up(f.pool, root), DURUM_E_ABORTED);
    DURUM_TX_BEGIN(f.pool) {
        CHECK_CODE(changes_and_gives_up(f.pool, root), DURUM_E_ABORTED);
        went_on = 1;
    }
    DURUM_TX_ONABORT {
        aborted = 1;
        CHECK_CODE(durum_errorcode(), DURUM_E_ABORTED);
    }
    DURUM_TX_END
    CHECK(went_on && aborted && root->value == 0);
    fixture_close(&f);
}

static int leaves_by_return(durum_pool *pool, cell *c) {
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(c);
        c->value = 1;
        return 7;
    }
    DURUM_TX_ONABORT {
        CHECK(0);
    }
    DURUM_TX_END
    return 0;
}

static void leaves_by_goto(durum_pool *pool, cell *c) {
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(c);
        c->value = 1;
        goto out;
    }
    DURUM_TX_END
    CHECK(0);
out:
    return;
}

static void leaves_by_break(durum_pool *pool, cell *c) {
    for (;;) {
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(c);
            c->value = 1;
            break;
        }
        DURUM_TX_END
        CHECK(0);
    }
}

static void leaves_by_continue(durum_pool *pool, cell *c) {
    for (volatile int i = 0; i < 2; i++) {
        DURUM_TX_BEGIN(pool) {
            DURUM_TX_ADD(c);
            c->value = 1;
            continue;
        }
        DURUM_TX_END
        CHECK(0);
    }
}

static void was_aborted_and_reported(const cell *c) {
    CHECK(c->value == 0 && durum_tx_level() == 0);
    CHECK_CODE(durum_errorcode(), DURUM_E_BLOCK_LEFT);
    CHECK(strstr(reported, "blocks.c:") != NULL && strcmp(reported, durum_errormsg()) == 0);
    reported[0] = '\0';
}

static void a_block_left_early_is_aborted_and_reported(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    durum_on_misuse(report);
    CHECK(leaves_by_return(f.pool, root) == 7);
    was_aborted_and_reported(root);
    leaves_by_goto(f.pool, root);
    was_aborted_and_reported(root);
    leaves_by_break(f.pool, root);
    was_aborted_and_reported(root);
    leaves_by_continue(f.pool, root);
    was_aborted_and_reported(root);
    fixture_close(&f);
}

static void leaving_an_inner_block_early_dooms_the_outer_one(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    durum_on_misuse(report);
    volatile int aborted = 0;
    DURUM_TX_BEGIN(f.pool) {
        CHECK(leaves_by_return(f.pool, root) == 7);
        CHECK(durum_tx_level() == 1);
    }
    DURUM_TX_ONABORT {
        aborted = 1;
    }
    DURUM_TX_END
    CHECK(aborted && root->value == 0);
    durum_on_misuse(NULL);
    fixture_close(&f);
}

static void unbalanced_levels_abort_the_block(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    volatile int code = 0;
    DURUM_TX_BEGIN(f.pool) {
        CHECK_CODE(durum_tx_commit(), DURUM_E_UNBALANCED);
        CHECK_CODE(durum_tx_rollback(), DURUM_E_UNBALANCED);
        CHECK(durum_tx_level() == 1);
        DURUM_TX_ADD(root);
        root->value = 1;
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK); /* and no end to it */
    }
    DURUM_TX_ONABORT {
        code = durum_errorcode();
    }
    DURUM_TX_END
    CHECK_CODE(code, DURUM_E_UNBALANCED);
    CHECK(durum_tx_level() == 0 && root->value == 0);

    /* A level that is ended is fine. */
    DURUM_TX_BEGIN(f.pool) {
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        DURUM_TX_ADD(root);
        root->value = 2;
        CHECK_CODE(durum_tx_commit(), DURUM_OK);
    }
    DURUM_TX_END
    CHECK(root->value == 2);

    /* An abort above a level without a block takes that level with it. */
    DURUM_TX_BEGIN(f.pool) {
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        DURUM_TX_ADD(root);
        root->value = 3;
        durum_tx_abort();
    }
    DURUM_TX_END
    CHECK(durum_tx_level() == 0 && root->value == 2);
    fixture_close(&f);
}

static void a_block_in_a_plain_transaction_dooms_it(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
    DURUM_TX_BEGIN(f.pool) {
        DURUM_TX_ADD(root);
        root->value = 1;
        durum_tx_abort();
    }
    DURUM_TX_END
    CHECK(durum_tx_level() == 1);
    CHECK_CODE(durum_tx_commit(), DURUM_E_ABORTED);
    CHECK(root->value == 0);
    fixture_close(&f);
}

static void blocks_in_a_loop_leave_nothing_behind(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    for (int i = 0; i < 1000; i++) {
        DURUM_TX_BEGIN(f.pool) {
            DURUM_TX_ADD(root);
            root->value += 1;
            if (i % 2) {
                durum_tx_abort();
            }
        }
        DURUM_TX_END
    }
    CHECK(root->value == 500 && durum_tx_level() == 0);
    fixture_close(&f);
}

const test block_tests[] = {
    {"a_block_commits_at_its_end", a_block_commits_at_its_end},
    {"add_and_set_of_one_place_abort_the_block", add_and_set_of_one_place_abort_the_block},
    {"an_abort_restores_before_onabort_runs", an_abort_restores_before_onabort_runs},
    {"without_onabort_the_code_tells", without_onabort_the_code_tells},
    {"failing_macros_abort_with_their_code", failing_macros_abort_with_their_code},
    {"a_block_that_cannot_begin_runs_onabort_only", a_block_that_cannot_begin_runs_onabort_only},
    {"an_abort_in_a_called_function_reaches_the_block",
     an_abort_in_a_called_function_reaches_the_block},
    {"an_inner_block_is_part_of_the_outer_one", an_inner_block_is_part_of_the_outer_one},
    {"an_inner_abort_aborts_the_outer_block", an_inner_abort_aborts_the_outer_block},
    {"a_return_from_an_inner_onabort_leaves_the_outer_block_doomed",
     a_return_from_an_inner_onabort_leaves_the_outer_block_doomed},
    {"a_block_left_early_is_aborted_and_reported", a_block_left_early_is_aborted_and_reported},
    {"leaving_an_inner_block_early_dooms_the_outer_one",
     leaving_an_inner_block_early_dooms_the_outer_one},
    {"unbalanced_levels_abort_the_block", unbalanced_levels_abort_the_block},
    {"a_block_in_a_plain_transaction_dooms_it", a_block_in_a_plain_transaction_dooms_it},
    {"blocks_in_a_loop_leave_nothing_behind", blocks_in_a_loop_leave_nothing_behind},
    {NULL, NULL},
};
