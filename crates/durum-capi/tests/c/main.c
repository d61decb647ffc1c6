/* Runs the tests of the C interface, each in a process of its own.
 *
 *     capi_test DIRECTORY [NAME]    NAME: only tests with this in their name
 *
 * Where DURUMD names a durumd, each test's store is served by one of its own. The last line is
 * "N passed, N failed".
 */
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *directory;
static const char *durumd;
static char own[512];
/* Short: the address of a socket has room for 107 bytes. */
static char socket_path[100];
static pid_t service;

const char *scratch(const char *name) {
    static char path[1024];
    snprintf(path, sizeof(path), "%s/%s", own, name);
    return path;
}

int is_served(void) {
    return durumd != NULL;
}

const char *store_path(void) {
    static char path[120];
    if (!is_served())
        return scratch("store");
    snprintf(path, sizeof(path), "durum+unix:%s", socket_path);
    return path;
}

fixture fixture_new(void) {
    fixture f;
    f.store = durum_store_open_or_create(store_path(), NULL);
    CHECK(f.store != NULL);
    f.pool = durum_pool_create(f.store, "pool", NULL);
    CHECK(f.pool != NULL);
    return f;
}

void fixture_close(fixture *f) {
    CHECK_CODE(durum_pool_close(f->pool), DURUM_OK);
    CHECK_CODE(durum_store_close(f->store), DURUM_OK);
}

/* Whether somebody listens at the socket. */
static int answers(void) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof(address));
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int connected = connect(end, (const struct sockaddr *)&address, sizeof(address));
    close(end);
    return connected == 0;
}

void service_comes(void) {
    fflush(NULL);
    service = fork();
    CHECK(service >= 0);
    if (service == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int log = open(scratch("log"), O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(log, STDERR_FILENO);
        execl(durumd, durumd, "--store", scratch("store"), "--socket", socket_path, (char *)NULL);
        perror(durumd);
        _exit(127);
    }
    const struct timespec pause = {0, 2000000};
    for (int tries = 0; !answers(); tries++) {
        CHECK(tries < 10000 && waitpid(service, NULL, WNOHANG) == 0);
        nanosleep(&pause, NULL);
    }
}

void service_dies(void) {
    int status = 0;
    CHECK(kill(service, SIGKILL) == 0 && waitpid(service, &status, 0) == service);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* In order, and without a client left over that holds it up. */
static void service_ends(void) {
    int status = 0;
    CHECK(kill(service, SIGTERM) == 0 && waitpid(service, &status, 0) == service);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
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
        if (is_served())
            service_comes();
        t->run();
        if (is_served())
            service_ends();
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
    durumd = getenv("DURUMD");
    snprintf(socket_path, sizeof(socket_path), "%s/sock", directory);
    const test *const files[] = {
        object_tests, transaction_tests, shared_tests,  alone_tests,
        block_tests,  local_tests,       type_tests,    log_tests,
        fault_tests,  migration_tests,   reading_tests, is_served() ? service_tests : store_tests};
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
