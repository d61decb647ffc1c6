/* Runs the tests of the C interface, each in a process of its own.
 *
 *     capi_test DIRECTORY [NAME]    NAME: only tests with this in their name
 *
 * The last line is "N passed, N failed".
 */
#include "check.h"
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *directory;
static char own[512];

const char *scratch(const char *name) {
    static char path[1024];
    snprintf(path, sizeof(path), "%s/%s", own, name);
    return path;
}

fixture fixture_new(void) {
    fixture f;
    f.store = durum_store_create(scratch("store"), NULL);
    CHECK(f.store != NULL);
    f.pool = durum_pool_create(f.store, "pool", NULL);
    CHECK(f.pool != NULL);
    return f;
}

void fixture_close(fixture *f) {
    CHECK_CODE(durum_pool_close(f->pool), DURUM_OK);
    CHECK_CODE(durum_store_close(f->store), DURUM_OK);
}

static int run(const test *t) {
    snprintf(own, sizeof(own), "%s/%s", directory, t->name);
    if (mkdir(own, 0777) != 0) {
        perror(own);
        return 0;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 0;
    }
    if (child == 0) {
        t->run();
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return 1;
    }
    if (WIFSIGNALED(status)) {
        printf("%s: signal %d\n", t->name, WTERMSIG(status));
    } else {
        printf("%s: FAILED\n", t->name);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s DIRECTORY [NAME]\n", argv[0]);
        return 2;
    }
    directory = argv[1];
    const test *const files[] = {store_tests,  object_tests, transaction_tests,
                                 shared_tests, block_tests,  local_tests,
                                 type_tests,   log_tests,    fault_tests};
    int passed = 0, failed = 0;
    for (size_t file = 0; file < sizeof(files) / sizeof(files[0]); file++) {
        for (const test *t = files[file]; t->name != NULL; t++) {
            if (argc > 2 && strstr(t->name, argv[2]) == NULL) {
                continue;
            }
            if (run(t)) {
                passed++;
            } else {
                failed++;
            }
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
