/* The network of sensors: examples/rust/src/bin/sensors.rs. */
#include "pool.h"
#include "sensors.h"

#include <stdbool.h>

struct sensor_variable {
    uint64_t id;
    uint64_t value;
    uint64_t changes;
    TOID(struct sensor_variable) less;
    TOID(struct sensor_variable) greater;
    TOID(struct sensor_variable) newer;
    TOID(struct sensor_variable) older;
};

struct sensor_state {
    uint64_t node;
    uint64_t rounds;
    uint64_t variables;
    TOID(struct sensor_variable) tree;
    TOID(struct sensor_variable) newest;
    TOID(struct sensor_variable) oldest;
    TOID(struct sensor_state) next;
};

struct sensor_network {
    uint64_t nodes;
    uint64_t variables;
    TOID(struct sensor_state) states;
    TOID(struct sensor_variable) newest;
    TOID(struct sensor_variable) oldest;
};

struct peer_network {
    struct pool pool;
    struct sensor_network *root;
};

struct peer_result {
    PMEMobjpool *pop;
    struct sensor_state *state;
};

#define LAYOUT POBJ_LAYOUT_NAME(durum_bench)

/* Makes the variables of ids `first` to before `end`, in the order of ids for the list; their tree.
 */
static TOID(struct sensor_variable)
    plant(struct sensor_state *state, uint64_t first, uint64_t end) {
    if (first == end)
        return TOID_NULL(struct sensor_variable);
    uint64_t id = first + (end - first) / 2;
    TOID(struct sensor_variable) less = plant(state, first, id);
    TOID(struct sensor_variable) variable = TX_ZNEW(struct sensor_variable);
    D_RW(variable)->id = id;
    D_RW(variable)->less = less;
    D_RW(variable)->newer = state->oldest;
    if (TOID_IS_NULL(state->oldest))
        state->newest = variable;
    else
        D_RW(state->oldest)->older = variable;
    state->oldest = variable;
    D_RW(variable)->greater = plant(state, id + 1, end);
    return variable;
}

int peer_sensors_begin(const char *path, size_t pool_size, uint64_t variables) {
    /* Each opening would look for what the memory says of power cuts, in hundreds of files of the
     * system: tmpfs says nothing. */
    int asks = 0;
    if (pmemobj_ctl_set(NULL, "sds.at_create", &asks) != 0)
        return -1;
    PMEMobjpool *pop = pmemobj_create(path, LAYOUT, pool_size, 0600);
    if (pop == NULL)
        return -1;
    int result = 0;
    struct sensor_state *state = pmemobj_direct(pmemobj_root(pop, sizeof(struct sensor_state)));
    TX_BEGIN(pop) {
        TX_ADD_DIRECT(state);
        state->variables = variables;
        state->tree = plant(state, 0, variables);
    }
    TX_ONABORT {
        result = -1;
    }
    TX_END
    pmemobj_close(pop);
    return result;
}

/* Knuth's multiplicative hash. */
static uint64_t reading(uint64_t node, uint64_t number) {
    return (node << 32 | number) * UINT64_C(0x9E3779B97F4A7C15) >> 16;
}

static TOID(struct sensor_variable) find(TOID(struct sensor_variable) at, uint64_t id) {
    while (!TOID_IS_NULL(at) && D_RO(at)->id != id)
        at = id < D_RO(at)->id ? D_RO(at)->less : D_RO(at)->greater;
    return at;
}

/* State and variable are announced. */
static void to_the_front(struct sensor_state *state, TOID(struct sensor_variable) variable) {
    TOID(struct sensor_variable) newer = D_RO(variable)->newer;
    TOID(struct sensor_variable) older = D_RO(variable)->older;
    if (TOID_IS_NULL(newer))
        return;
    TX_SET(newer, older, older);
    if (TOID_IS_NULL(older))
        state->oldest = newer;
    else
        TX_SET(older, newer, newer);
    TX_SET(state->newest, newer, variable);
    D_RW(variable)->newer = TOID_NULL(struct sensor_variable);
    D_RW(variable)->older = state->newest;
    state->newest = variable;
}

int peer_sensors_work(const char *path, uint64_t node, uint64_t rounds, uint64_t changes) {
    PMEMobjpool *pop = pmemobj_open(path, LAYOUT);
    if (pop == NULL)
        return -1;
    int result = 0;
    struct sensor_state *state = pmemobj_direct(pmemobj_root(pop, sizeof(struct sensor_state)));
    for (uint64_t round = state->rounds + 1; round <= rounds && result == 0; round++) {
        TX_BEGIN(pop) {
            TX_ADD_DIRECT(state);
            state->node = node;
            state->rounds = round;
            for (uint64_t change = 0; change < changes; change++) {
                uint64_t measured = reading(node, round * changes + change);
                TOID(struct sensor_variable)
                variable = find(state->tree, measured % state->variables);
                TX_ADD(variable);
                D_RW(variable)->value = measured;
                D_RW(variable)->changes++;
                to_the_front(state, variable);
            }
        }
        TX_ONABORT {
            result = -1;
        }
        TX_END
    }
    pmemobj_close(pop);
    return result;
}

struct peer_network *peer_network_open(const char *path, size_t pool_size) {
    struct peer_network *network = calloc(1, sizeof(*network));
    if (network == NULL || pool_create(&network->pool, path, pool_size) != 0) {
        free(network);
        return NULL;
    }
    network->root = pmemobj_direct(pmemobj_root(network->pool.pop, sizeof(struct sensor_network)));
    if (network->root == NULL) {
        peer_network_close(network);
        return NULL;
    }
    return network;
}

void peer_network_close(struct peer_network *network) {
    if (network != NULL)
        pool_remove(&network->pool);
    free(network);
}

struct peer_result *peer_result_open(const char *path) {
    struct peer_result *result = calloc(1, sizeof(*result));
    if (result == NULL)
        return NULL;
    result->pop = pmemobj_open(path, LAYOUT);
    if (result->pop == NULL) {
        free(result);
        return NULL;
    }
    result->state = pmemobj_direct(pmemobj_root(result->pop, sizeof(struct sensor_state)));
    return result;
}

void peer_result_close(struct peer_result *result) {
    if (result != NULL)
        pmemobj_close(result->pop);
    free(result);
}

/* What is noted of each variable of a result before the first one is copied. An identifier is
 * followed fast where the last one was of the same pool, so each pool has its turn. */
struct noted {
    const struct sensor_variable *source;
    uint64_t less; /* the number of variables, where there is none */
    uint64_t greater;
};

/* In the order of the list. */
static void note(const struct sensor_state *from, struct noted *noted) {
    TOID(struct sensor_variable) at;
    for (at = from->newest; !TOID_IS_NULL(at); at = D_RO(at)->older, noted++) {
        const struct sensor_variable *source = noted->source = D_RO(at);
        bool has_less = !TOID_IS_NULL(source->less);
        bool has_greater = !TOID_IS_NULL(source->greater);
        noted->less = has_less ? D_RO(source->less)->id : from->variables;
        noted->greater = has_greater ? D_RO(source->greater)->id : from->variables;
    }
}

/* Copies the variables of a result, and has them lead to each other; `copies` are found by their
 * ids. Nothing of what is new needs a snapshot. */
static void copy(const struct noted *noted, uint64_t tree, struct sensor_state *to,
                 TOID(struct sensor_variable) * copies) {
    struct sensor_variable *last = NULL;
    to->oldest = TOID_NULL(struct sensor_variable);
    for (uint64_t i = 0; i < to->variables; i++) {
        const struct sensor_variable *source = noted[i].source;
        TOID(struct sensor_variable) made = TX_NEW(struct sensor_variable);
        struct sensor_variable *target = D_RW(made);
        *target = *source;
        target->newer = to->oldest;
        target->older = TOID_NULL(struct sensor_variable);
        if (last == NULL)
            to->newest = made;
        else
            last->older = made;
        copies[source->id] = made;
        to->oldest = made;
        last = target;
    }
    copies[to->variables] = TOID_NULL(struct sensor_variable);
    to->tree = copies[tree];
    for (uint64_t i = 0; i < to->variables; i++) {
        struct sensor_variable *target = D_RW(copies[noted[i].source->id]);
        target->less = copies[noted[i].less];
        target->greater = copies[noted[i].greater];
    }
}

int peer_network_take_in(struct peer_network *network, const struct peer_result *result) {
    const struct sensor_state *from = result->state;
    TOID(struct sensor_variable) *copies = malloc((from->variables + 1) * sizeof(*copies));
    struct noted *noted = malloc(from->variables * sizeof(*noted));
    if (copies == NULL || noted == NULL) {
        free(copies);
        free(noted);
        return -1;
    }
    note(from, noted);
    uint64_t tree = D_RO(from->tree)->id;
    int taken = 0;
    TX_BEGIN(network->pool.pop) {
        struct sensor_network *root = network->root;
        TOID(struct sensor_state) made = TX_NEW(struct sensor_state);
        struct sensor_state *to = D_RW(made);
        *to = *from;
        copy(noted, tree, to, copies);
        TX_ADD_DIRECT(root);
        to->next = root->states;
        root->states = made;
        root->nodes++;
        root->variables += to->variables;
        /* Its variables come before those that are there. */
        if (TOID_IS_NULL(root->newest)) {
            root->oldest = to->oldest;
        } else {
            TX_SET(root->newest, newer, to->oldest);
            D_RW(to->oldest)->older = root->newest;
        }
        root->newest = to->newest;
    }
    TX_ONABORT {
        taken = -1;
    }
    TX_END
    free(copies);
    free(noted);
    return taken;
}

uint64_t peer_network_sum(const struct peer_network *network) {
    uint64_t sum = 0;
    TOID(struct sensor_variable) at = network->root->newest;
    while (!TOID_IS_NULL(at)) {
        const struct sensor_variable *variable = D_RO(at);
        sum += variable->value;
        at = variable->older;
    }
    return sum;
}

/* As in the benchmark. */
static uint64_t digested(uint64_t digest, uint64_t word) {
    return (digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
}

struct peer_walk peer_network_walk(const struct peer_network *network) {
    const struct sensor_network *root = network->root;
    struct peer_walk walk = {0, 0, 1};
    TOID(struct sensor_state) next = root->states;
    TOID(struct sensor_variable) at = root->newest;
    while (!TOID_IS_NULL(next)) {
        const struct sensor_state *state = D_RO(next);
        for (uint64_t i = 0; i < state->variables && !TOID_IS_NULL(at); i++) {
            const struct sensor_variable *variable = D_RO(at);
            uint64_t words[] = {state->node, variable->id, variable->value, variable->changes};
            for (size_t word = 0; word < sizeof(words) / sizeof(*words); word++)
                walk.sum = digested(walk.sum, words[word]);
            walk.sorted &= TOID_EQUALS(find(state->tree, variable->id), at);
            walk.count++;
            at = variable->older;
        }
        next = state->next;
    }
    walk.sorted &= TOID_IS_NULL(at) && walk.count == root->variables;
    return walk;
}
