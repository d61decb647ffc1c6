// A heap that cannot be opened tells why: by nvl_error, by errno, and where it is used all the same.
// RUN: %levels %s
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "inputs/test.h"

static void is_refused(nvl_heap_t *heap, int expected, const char *text) {
    int found = errno;
    if (heap || found != expected || !strstr(nvl_error(), text)) {
        fprintf(stderr, "expected errno %d and \"%s\": %d \"%s\"\n", expected, text, found,
                nvl_error());
        _exit(1);
    }
    CHECK(strcmp(nvl_error(), durum_errormsg()) == 0);
}

static void write_to(const char *path, off_t offset, const char *text) {
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0 && pwrite(file, text, strlen(text), offset) == (ssize_t)strlen(text));
    close(file);
}

static void paths(void) {
    CHECK(strcmp(nvl_error(), "") == 0);
    is_refused(nvl_open("missing"), ENOENT, "missing: no durum store here");
    CHECK(strstr(nvl_error(), "nvl_create(\"missing\")") && !strstr(nvl_error(), "durum init"));
    CHECK(durum_errorcode() == DURUM_E_STORE_MISSING);
    is_refused(nvl_open("no/such/heap"), ENOENT, "no durum store here");
    is_refused(nvl_open(NULL), EINVAL, "the path is NULL");
    is_refused(nvl_open("\xff"), EINVAL, "not UTF-8");
    CHECK(mkdir("empty", 0700) == 0);
    is_refused(nvl_open("empty"), ENOENT, "durum.store is missing");
    write_to("file", 0, "text");
    is_refused(nvl_open("file"), ENOTDIR, "file");
    is_refused(nvl_create("file"), EEXIST, "already exists");
    write_to("empty/file", 0, "text");
    is_refused(nvl_create("empty"), EEXIST, "already exists");
    is_refused(nvl_create("no/such/heap"), ENOENT, "no/such");
    nvl_heap_t *heap = nvl_create("heap");
    CHECK(heap && strcmp(nvl_error(), "") == 0);
    is_refused(nvl_create("heap"), EEXIST, "heap");
    is_refused(nvl_open("heap"), EBUSY, "open already in this process");
    is_refused(nvl_open("heap/second"), ENOENT, "no pool \"second\"; make the heap with nvl_create(\"heap/second\")");
    CHECK(durum_errorcode() == DURUM_E_POOL_MISSING);
    setenv("DURUM_NVL_ENGINE", "steam", 1);
    is_refused(nvl_create("other"), EINVAL, "engines are shadow, hybrid and twin");
    unsetenv("DURUM_NVL_ENGINE");
    // A pool that is no heap.
    durum_store *store = durum_store_create("store", NULL);
    durum_pool *pool = durum_pool_create(store, "numbers", NULL);
    CHECK(store && pool && durum_root(pool, 0, 64));
    CHECK(durum_pool_close(pool) == 0 && durum_store_close(store) == 0);
    is_refused(nvl_open("store/numbers"), EINVAL, "numbers");
    CHECK(nvl_open("heap/second") == NULL);
    nvl_heap_t *second = nvl_create("heap/second");
    CHECK(second != NULL);
    nvl_close(second);
    nvl_close(heap);
}

static void in_use(nvl_heap_t *heap) {
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "other", (char *)NULL);
        _exit(2);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    nvl_close(heap);
}
static void of_another_process(void) {
    is_refused(nvl_open("heap"), EBUSY, "in use by process");
}

// Root may do anything, so another user tries.
static void without_permission(void) {
    CHECK(chmod("heap", 0700) == 0 && chmod(".", 0755) == 0);
    if (getuid() == 0)
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    else
        CHECK(chmod("heap", 0) == 0);
    is_refused(nvl_open("heap"), EACCES, "heap");
    if (getuid() == 65534)
        is_refused(nvl_create("new"), EACCES, "new");
}

// The same where the directory may be searched, and one of its files may not be opened. `forbidden` is the file.
static const char *forbidden;
static void without_permission_for_a_file(void) {
    CHECK(chmod("..", 0755) == 0 && chmod(".", 0755) == 0 && chmod("heap", 0755) == 0);
    CHECK(chmod("heap/lock", 0666) == 0);
    CHECK(chmod("heap/durum.store", 0644) == 0 && chmod(forbidden, 0) == 0);
    if (getuid() == 0)
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    is_refused(nvl_open("heap"), EACCES, forbidden);
    is_refused(nvl_create("heap"), EACCES, forbidden);
}

static void damaged(void) {
    CHECK(chmod("heap", 0700) == 0);
    CHECK(chmod("heap/lock", 0600) == 0 && chmod("heap/durum.store", 0600) == 0);
    nvl_heap_t *heap = nvl_create("overwritten");
    nvl_close(heap);
    write_to("overwritten/durum.store", 0, "something else");
    is_refused(nvl_open("overwritten"), EIO, "durum check --repair");
    // Without the rest of a store it is somebody else's.
    CHECK(unlink("overwritten/registry") == 0 && unlink("overwritten/registry.copy") == 0);
    is_refused(nvl_open("overwritten"), EINVAL, "durum.store");
    heap = nvl_create("flipped");
    nvl_close(heap);
    write_to("flipped/registry", 100, "damage");
    write_to("flipped/registry.copy", 100, "damage");
    is_refused(nvl_open("flipped"), EIO, "registry");
    // Parts of a store can be mended, so nobody is told to remove them.
    heap = nvl_create("parts");
    nvl_close(heap);
    CHECK(unlink("parts/durum.store") == 0);
    is_refused(nvl_open("parts"), EIO, "durum check --repair");
    is_refused(nvl_create("parts"), EIO, "durum check --repair");
    CHECK(!strstr(nvl_error(), "remove"));
}

static int which;
static void use_null(nvl_heap_t *heap) {
    CHECK(freopen("errors", "w", stderr) != NULL);
    nvl_heap_t *null = NULL;
    if (which)
        null = nvl_open("missing");
    if (which == 2)
        nvl_close(nvl_create("made"));
    if (which >= 3 && !(null = nvl_open("parts")))
        null = nvl_create("parts");
    CHECK(heap && !null);
    nvl_alloc_nv(null, 1, long);
}
static void expect(const char *text) {
    int status = in_process(use_null);
    char errors[2000] = "";
    FILE *file = fopen("errors", "r");
    errors[fread(errors, 1, sizeof errors - 1, file)] = 0;
    fclose(file);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(errors, text)) {
        fprintf(stderr, "expected %s, got: %s\n", text, errors);
        _exit(1);
    }
    which++;
}

int main(int argc, char **argv) {
    if (argc == 1 && strcmp(argv[0], "other") == 0) {
        of_another_process();
        return 0;
    }
    done(paths);
    CHECK(in_process(in_use) == SIGKILL);
    done(without_permission);
    forbidden = "heap/lock";
    done(without_permission_for_a_file);
    forbidden = "heap/durum.store";
    done(without_permission_for_a_file);
    done(damaged);
    expect("c:136: nvl: the heap is NULL: nvl_open and nvl_create give NULL");
    expect("c:136: nvl: the heap is NULL: nvl_open(\"missing\") failed: missing: no durum store");
    expect("c:136: nvl: the heap is NULL; the last that failed in this thread is nvl_open(");
    expect("c:136: nvl: the heap is NULL: nvl_create(\"parts\") failed: ");
    expect("; before it, nvl_open(\"parts\") failed: ");
    return 0;
}
