/* What a service answers: a durumd serves the store of each test. */
#include "check.h"
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_pool_is_one_programs(void) {
    fixture f = fixture_new();
    /* Another client of the service, as another program would be. */
    durum_store *other = durum_store_open(store_path(), NULL);
    CHECK(other != NULL);
    CHECK_NULL(durum_pool_open(other, "pool", NULL), DURUM_E_POOL_BUSY);
    CHECK(strstr(durum_errormsg(), "\"pool\"") != NULL);
    CHECK(DURUM_E_GROUP(durum_errorcode()) == 2);
    CHECK_NULL(durum_pool_open_or_create(other, "pool", NULL), DURUM_E_POOL_BUSY);
    CHECK_CODE(durum_pool_remove(other, "pool"), DURUM_E_POOL_BUSY);
    durum_pool *second = durum_pool_create(other, "second", NULL);
    CHECK(second != NULL);
    CHECK_CODE(durum_pool_close(second), DURUM_OK);
    CHECK_CODE(durum_pool_close(f.pool), DURUM_OK);
    f.pool = durum_pool_open(other, "pool", NULL);
    CHECK(f.pool != NULL);
    CHECK_CODE(durum_store_close(other), DURUM_OK);
    fixture_close(&f);
}

static void the_pool_of_a_killed_program_is_recovered_for_the_next_one(void) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fixture f = fixture_new();
        cell *root = DURUM_ROOT(f.pool, cell);
        DURUM_TX_BEGIN(f.pool) {
            DURUM_TX_ADD(root);
            root->value = 1;
        }
        DURUM_TX_END
        CHECK_CODE(durum_tx_begin(f.pool), DURUM_OK);
        CHECK_CODE(durum_tx_add(root, sizeof(*root)), DURUM_OK);
        root->value = 2;
        CHECK(write(ends[1], "!", 1) == 1);
        for (;;)
            pause();
    }
    char told;
    CHECK(read(ends[0], &told, 1) == 1);
    durum_store *store = durum_store_open(store_path(), NULL);
    CHECK_NULL(durum_pool_open(store, "pool", NULL), DURUM_E_POOL_BUSY);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    /* Whoever asks waits for the recovery. */
    durum_pool *pool = durum_pool_open(store, "pool", NULL);
    cell *root = DURUM_ROOT(pool, cell);
    CHECK(root != NULL && root->value == 1);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

static void the_domain_is_the_services_choice(void) {
    durum_store_options options = DURUM_STORE_OPTIONS_INIT;
    options.domain = DURUM_DOMAIN_EMULATED_PCM;
    CHECK_NULL(durum_store_open(store_path(), &options), DURUM_E_OPTIONS);
    CHECK_NULL(durum_store_create(store_path(), NULL), DURUM_E_STORE_EXISTS);
    CHECK_NULL(durum_store_open(scratch("store"), NULL), DURUM_E_STORE_BUSY);
}

static void set(durum_pool *pool, cell *root, uint64_t value) {
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(root);
        root->value = value;
    }
    DURUM_TX_END
    CHECK_CODE(durum_errorcode(), DURUM_OK);
}

static void transactions_go_on_without_the_service(void) {
    fixture f = fixture_new();
    cell *root = DURUM_ROOT(f.pool, cell);
    set(f.pool, root, 1);
    service_dies();
    set(f.pool, root, 2);
    CHECK_NULL(durum_store_open(store_path(), NULL), DURUM_E_SERVICE_GONE);
    CHECK(strstr(durum_errormsg(), "durumd --store") != NULL);
    CHECK(DURUM_E_GROUP(durum_errorcode()) == 4);
    /* Its clients live: nobody else may open the directory. */
    CHECK_NULL(durum_store_open(scratch("store"), NULL), DURUM_E_STORE_SERVED);
    CHECK(DURUM_E_GROUP(durum_errorcode()) == 2);
    service_comes();
    set(f.pool, root, 3);
    /* What needs the service works again, too. */
    CHECK(durum_malloc(f.pool, NULL, 8 << 20) != NULL);
    fixture_close(&f);
}

static void remove_files(const char *name) {
    char path[1400];
    DIR *files = opendir(scratch(name));
    CHECK(files != NULL);
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", scratch(name), entry->d_name);
        CHECK(entry->d_name[0] == '.' || unlink(path) == 0);
    }
    closedir(files);
}

static void one_that_was_taken_for_gone_is_told_so(void) {
    fixture f = fixture_new();
    service_dies();
    /* Without their locks it is as if the clients had died. */
    remove_files("store/clients");
    service_comes();
    /* The request hears it, or a thread of the library's has heard it before. */
    CHECK(durum_pool_create(f.store, "second", NULL) == NULL);
    CHECK(durum_errorcode() == DURUM_E_CLIENT_UNKNOWN || durum_errorcode() == DURUM_E_POISONED);
    CHECK(strstr(durum_errormsg(), "gone") != NULL ||
          strstr(durum_errormsg(), "not known") != NULL);
    CHECK_CODE(durum_store_close(f.store), DURUM_OK);
    (void)durum_pool_close(f.pool);
    durum_store *store = durum_store_open(store_path(), NULL);
    durum_pool *pool = durum_pool_open(store, "pool", NULL);
    CHECK(pool != NULL);
    CHECK_CODE(durum_pool_close(pool), DURUM_OK);
    CHECK_CODE(durum_store_close(store), DURUM_OK);
}

const test service_tests[] = {
    {"a_pool_is_one_programs", a_pool_is_one_programs},
    {"the_pool_of_a_killed_program_is_recovered_for_the_next_one",
     the_pool_of_a_killed_program_is_recovered_for_the_next_one},
    {"the_domain_is_the_services_choice", the_domain_is_the_services_choice},
    {"transactions_go_on_without_the_service", transactions_go_on_without_the_service},
    {"one_that_was_taken_for_gone_is_told_so", one_that_was_taken_for_gone_is_told_so},
    {NULL, NULL},
};
