#include "../kernel.h"

/* Room for any kernel. */
#define POOL_SIZE ((size_t)256 << 20)

static PMEMobjpool *pool;

void done(int code) {
    if (code != 0) {
        fprintf(stderr, "libpmemobj: %s\n", pmemobj_errormsg());
        exit(1);
    }
}

void memory_open(const char *path) {
    pool = pmemobj_create(path, "locks", POOL_SIZE, 0600);
    done(pool == NULL);
}

void *memory_root(size_t size) {
    void *root = pmemobj_direct(pmemobj_root(pool, size));
    done(root == NULL);
    return root;
}

/* It does not say what it does. */
void memory_counts(struct counts *counts) {
    *counts = (struct counts){0, 0, 0};
}

void pmemobj_section_begin(void) {
    done(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE));
}

void pmemobj_section_end(void) {
    pmemobj_tx_commit();
    done(pmemobj_tx_end());
}

void *allocated(size_t size) {
    PMEMoid object = pmemobj_tx_alloc(size, 0);
    done(OID_IS_NULL(object));
    return pmemobj_direct(object);
}

/* It has fences of its own. */
void memory_delay(unsigned long fence_ns) {
    (void)fence_ns;
    abort();
}
