/* The low-level log. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A store with a pool whose program works in place: others have no use for a log of one's own. */
static fixture hybrid_fixture(void) {
    fixture f;
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.engine = DURUM_ENGINE_HYBRID;
    f.store = durum_store_open_or_create(store_path(), NULL);
    CHECK(f.store != NULL);
    f.pool = durum_pool_open_or_create(f.store, "pool", &options);
    CHECK(f.pool != NULL);
    return f;
}

static void null_and_misuse_are_refused(void) {
    CHECK_NULL(durum_log_open(NULL), DURUM_E_ARGUMENT);
    fixture f = hybrid_fixture();
    cell *root = DURUM_ROOT(f.pool, cell);
    durum_log *log = durum_log_open(f.store);
    CHECK(log != NULL);
    int local = 0;
    CHECK_CODE(durum_log_append(log, &local, &local, sizeof(local), 1, 0), DURUM_E_NOT_IN_POOL);
    CHECK_CODE(durum_log_append(log, root, root, 8, 0, 0), DURUM_E_LOG_MISUSE);
    CHECK_CODE(durum_log_append(log, NULL, root, 8, 1, 0), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_log_append(log, root, NULL, 8, 1, 0), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_log_append(log, root, root, 8, 1, 64), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_log_set_range(log, 4, 2), DURUM_E_LOG_MISUSE);
    CHECK_CODE(durum_log_close(log), DURUM_OK);
    CHECK_CODE(durum_log_close(NULL), DURUM_OK);
    fixture_close(&f);
}

static void a_null_log_is_refused(void) {
    uint64_t value = 0;
    CHECK_CODE(durum_log_append(NULL, &value, &value, 8, 1, 0), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_log_flush(NULL), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_log_set_range(NULL, 0, 2), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_log_apply(NULL), DURUM_E_ARGUMENT);
    CHECK_CODE(durum_log_reset(NULL), DURUM_E_ARGUMENT);
}

static void undo_entries_are_applied_backwards_and_redo_entries_forwards(void) {
    fixture f = hybrid_fixture();
    cell *root = DURUM_ROOT(f.pool, cell);
    durum_log *log = durum_log_open(f.store);
    uint64_t cached = 1, one = 1, two = 2, three = 3;

    /* The older value of two undo entries wins. */
    CHECK_CODE(durum_log_append(log, &root->value, &one, 8, DURUM_SEQUENCE_UNDO, DURUM_LOG_REVERSE),
               DURUM_OK);
    CHECK_CODE(durum_log_append(log, &root->value, &two, 8, DURUM_SEQUENCE_UNDO, DURUM_LOG_REVERSE),
               DURUM_OK);
    CHECK_CODE(durum_log_append(log, &cached, &three, 8, DURUM_SEQUENCE_UNDO,
                                DURUM_LOG_REVERSE | DURUM_LOG_VOLATILE),
               DURUM_OK);
    CHECK_CODE(durum_log_append(log, &root->other, &two, 8, DURUM_SEQUENCE_REDO, 0), DURUM_OK);
    CHECK_CODE(durum_log_append(log, &root->other, &three, 8, DURUM_SEQUENCE_REDO, 0), DURUM_OK);
    CHECK_CODE(durum_log_flush(log), DURUM_OK);
    CHECK_CODE(durum_log_apply(log), DURUM_OK);
    CHECK(root->value == 1 && root->other == 0 && cached == 3);

    /* The newer value of two redo entries wins. */
    root->value = 50;
    CHECK_CODE(durum_log_set_range(log, 2, 4), DURUM_OK);
    CHECK_CODE(durum_log_apply(log), DURUM_OK);
    CHECK(root->value == 50 && root->other == 3);

    CHECK_CODE(durum_log_set_range(log, 4, 4), DURUM_OK);
    root->other = 60;
    CHECK_CODE(durum_log_apply(log), DURUM_OK);
    CHECK(root->other == 60);
    CHECK_CODE(durum_log_reset(log), DURUM_OK);
    CHECK_CODE(durum_log_apply(log), DURUM_OK);
    CHECK(root->value == 50 && root->other == 60);
    CHECK_CODE(durum_log_close(log), DURUM_OK);
    fixture_close(&f);
}

/* Leaves a log in the stage (lo, hi) and is killed. */
static void die_in_stage(uint8_t lo, uint8_t hi) {
    fixture f = hybrid_fixture();
    cell *root = DURUM_ROOT(f.pool, cell);
    CHECK(root != NULL);
    root->value = root->other = 10;
    CHECK_CODE(durum_persist(root, sizeof(*root)), DURUM_OK);
    durum_log *log = durum_log_open(f.store);
    CHECK(log != NULL);
    uint64_t new_value = 20;
    CHECK_CODE(durum_log_append(log, &root->value, &root->value, 8, DURUM_SEQUENCE_UNDO,
                                DURUM_LOG_REVERSE),
               DURUM_OK);
    CHECK_CODE(durum_log_append(log, &root->other, &new_value, 8, DURUM_SEQUENCE_REDO, 0),
               DURUM_OK);
    CHECK_CODE(durum_log_append(log, &new_value, &new_value, 8, DURUM_SEQUENCE_UNDO,
                                DURUM_LOG_REVERSE | DURUM_LOG_VOLATILE),
               DURUM_OK);
    CHECK_CODE(durum_log_flush(log), DURUM_OK);
    CHECK_CODE(durum_log_set_range(log, lo, hi), DURUM_OK);
    root->value = 20;
    kill(getpid(), SIGKILL);
}

static void recovery_follows_the_range_at_the_kill(void) {
    static const struct {
        uint8_t lo, hi;
        uint64_t value, other;
    } stages[] = {{0, 2, 10, 10}, {2, 4, 20, 20}, {4, 4, 20, 10}};
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            die_in_stage(stages[i].lo, stages[i].hi);
            _exit(1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

        child = fork();
        if (child == 0) {
            durum_store *store = durum_store_open(store_path(), NULL);
            durum_pool *pool = durum_pool_open(store, "pool", NULL);
            cell *root = DURUM_ROOT(pool, cell);
            CHECK(root != NULL);
            CHECK(root->value == stages[i].value && root->other == stages[i].other);
            CHECK_CODE(durum_pool_close(pool), DURUM_OK);
            CHECK_CODE(durum_store_close(store), DURUM_OK);
            exit(0);
        }
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

const test log_tests[] = {
    {"null_and_misuse_are_refused", null_and_misuse_are_refused},
    {"a_null_log_is_refused", a_null_log_is_refused},
    {"undo_entries_are_applied_backwards_and_redo_entries_forwards",
     undo_entries_are_applied_backwards_and_redo_entries_forwards},
    {"recovery_follows_the_range_at_the_kill", recovery_follows_the_range_at_the_kill},
    {NULL, NULL},
};
