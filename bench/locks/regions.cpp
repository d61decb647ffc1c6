// One structure of examples/locks in a heap, by one thread, half of the operations change it (iDO,
// §V): so DURUM_STATS tells how its regions are.
//
//   regions stack|queue|list|map OPERATIONS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nv.h>

extern "C" {
#include "list.h"
#include "map.h"
#include "queue.h"
#include "stack.h"
}

namespace {

constexpr std::uint64_t keys = 1000;

std::uint64_t next_random() {
    static std::uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

template <typename Begin, typename Put, typename Take>
void exchange(std::uint64_t operations, Begin begin, Put put, Take take) {
    begin();
    for (std::uint64_t i = 0; i < operations; i++) {
        std::uint64_t value;
        if (i % 2 == 0)
            put(i);
        else
            take(&value);
    }
}

template <typename Begin, typename Put, typename Find, typename Remove>
void look_up(std::uint64_t operations, Begin begin, Put put, Find find, Remove remove) {
    begin();
    for (std::uint64_t key = 0; key < keys; key += 2)
        put(key, key);
    for (std::uint64_t i = 0; i < operations; i++) {
        const std::uint64_t key = next_random() % keys;
        std::uint64_t value;
        switch (i % 4) {
        case 0:
            put(key, i);
            break;
        case 1:
            remove(key);
            break;
        default:
            find(key, &value);
        }
    }
}

template <typename Structure> Structure *made() {
    return static_cast<Structure *>(nv_root(sizeof(Structure)));
}

} // namespace

int main(int count, char **arguments) {
    const std::uint64_t operations = count == 3 ? std::strtoull(arguments[2], nullptr, 10) : 0;
    const char *name = count == 3 ? arguments[1] : "";
    if (!std::strcmp(name, "stack")) {
        auto *stack = made<struct stack>();
        exchange(
            operations, [=] { stack_begin(stack); }, [=](auto value) { stack_push(stack, value); },
            [=](auto *value) { stack_pop(stack, value); });
    } else if (!std::strcmp(name, "queue")) {
        auto *queue = made<struct queue>();
        exchange(
            operations, [=] { queue_begin(queue); }, [=](auto value) { queue_put(queue, value); },
            [=](auto *value) { queue_take(queue, value); });
    } else if (!std::strcmp(name, "list")) {
        auto *list = made<struct list>();
        look_up(
            operations, [=] { list_begin(list); },
            [=](auto key, auto value) { list_insert(list, key, value); },
            [=](auto key, auto *value) { list_find(list, key, value); },
            [=](auto key) { list_remove(list, key); });
    } else if (!std::strcmp(name, "map")) {
        auto *map = made<struct map>();
        look_up(
            operations, [=] { map_begin(map); },
            [=](auto key, auto value) { map_put(map, key, value); },
            [=](auto key, auto *value) { map_find(map, key, value); },
            [=](auto key) { map_remove(map, key); });
    } else {
        std::fprintf(stderr, "usage: regions stack|queue|list|map OPERATIONS\n");
        return 2;
    }
}
