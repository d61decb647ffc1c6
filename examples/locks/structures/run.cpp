// Runs each structure with some threads, and checks what comes out: `run THREADS OPERATIONS`.
//
// Stacks and queue: what is put in comes out, each value once, and from the queue in the order of
// each thread. List and map: each thread has keys of its own among those of the others, and knows
// what it must find.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "guarded_stack.hpp"

extern "C" {
#include "list.h"
#include "map.h"
#include "queue.h"
#include "stack.h"
}

namespace {

constexpr std::uint64_t keys_per_thread = 64;

std::uint64_t threads, operations;

[[noreturn]] void fail(const char *what, std::uint64_t number) {
    std::fprintf(stderr, "%s (%" PRIu64 ")\n", what, number);
    std::exit(1);
}

template <typename Work> void run_threads(Work work) {
    std::vector<std::thread> running;
    for (std::uint64_t i = 0; i < threads; i++)
        running.emplace_back(work, i);
    for (auto &thread : running)
        thread.join();
}

// Each thread puts values of its own, and takes any: two of three times, so that the end is not
// empty.
template <typename Put, typename Take>
void check_exchange(const char *name, bool in_order, Put put, Take take) {
    std::vector<std::vector<std::uint64_t>> taken(threads);
    run_threads([&](std::uint64_t self) {
        std::uint64_t value;
        for (std::uint64_t i = 0; i < operations; i++) {
            if (!put(self * operations + i))
                fail(name, i);
            if (i % 3 != 0 && take(&value))
                taken[self].push_back(value);
        }
    });
    std::vector<std::uint64_t> rest;
    for (std::uint64_t value; take(&value);)
        rest.push_back(value);
    taken.push_back(rest);

    std::vector<bool> is_seen(threads * operations);
    std::uint64_t count = 0;
    for (const auto &values : taken) {
        std::vector<std::uint64_t> next(threads, 0);
        for (std::uint64_t value : values) {
            if (value >= is_seen.size() || is_seen[value])
                fail("a value comes out that was not put in, or twice", value);
            is_seen[value] = true;
            count++;
            std::uint64_t &least = next[value / operations];
            if (in_order && value < least)
                fail("a value comes out behind a later one of the same thread", value);
            least = value + 1;
        }
    }
    if (count != threads * operations)
        fail("values are missing", threads * operations - count);
    std::printf("%s: %" PRIu64 " values in and out\n", name, count);
}

template <typename Put, typename Find, typename Remove>
void check_keys(const char *name, Put put, Find find, Remove remove) {
    run_threads([&](std::uint64_t self) {
        std::vector<std::uint64_t> expected(keys_per_thread, 0); // 0: it is not there
        std::uint64_t random = self + 1;
        for (std::uint64_t i = 1; i <= operations; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const std::uint64_t place = (random >> 33) % keys_per_thread,
                                key = place * threads + self;
            std::uint64_t value = 0;
            const bool is_there = expected[place] != 0;
            switch ((random >> 60) % 4) {
            case 0:
                if (remove(key) != is_there)
                    fail("a key was removed that was not there, or not one that was", key);
                expected[place] = 0;
                break;
            case 1:
                if (!put(key, i))
                    fail(name, key);
                expected[place] = i;
                break;
            default:
                if (find(key, &value) != is_there || value != expected[place])
                    fail("a key has another value than it was given", key);
            }
        }
    });
    std::printf("%s: %" PRIu64 " operations\n", name, threads * operations);
}

} // namespace

int main(int count, char **arguments) {
    threads = count == 3 ? std::strtoull(arguments[1], nullptr, 10) : 0;
    operations = count == 3 ? std::strtoull(arguments[2], nullptr, 10) : 0;
    if (threads == 0 || threads > 1000 || operations == 0) {
        std::fprintf(
            stderr, "usage: run THREADS OPERATIONS: two numbers from 1 on, at most 1000 threads\n");
        return 2;
    }

    stack stack;
    stack_begin(&stack);
    check_exchange(
        "stack", false, [&](auto value) { return stack_push(&stack, value); },
        [&](auto *value) { return stack_pop(&stack, value); });
    stack_end(&stack);

    GuardedStack guarded;
    check_exchange(
        "stack with guards", false,
        [&](auto value) {
            guarded.push(value);
            return true;
        },
        [&](auto *value) {
            const auto popped = guarded.pop();
            *value = popped.value_or(0);
            return popped.has_value();
        });
    if (guarded.size() != 0)
        fail("the stack with guards is empty, and says it has values", guarded.size());

    queue queue;
    if (!queue_begin(&queue))
        fail("queue: no memory", 0);
    check_exchange(
        "queue", true, [&](auto value) { return queue_put(&queue, value); },
        [&](auto *value) { return queue_take(&queue, value); });
    queue_end(&queue);

    list list;
    list_begin(&list);
    check_keys(
        "list", [&](auto key, auto value) { return list_insert(&list, key, value); },
        [&](auto key, auto *value) { return list_find(&list, key, value); },
        [&](auto key) { return list_remove(&list, key); });
    list_end(&list);

    map map;
    map_begin(&map);
    check_keys(
        "map", [&](auto key, auto value) { return map_put(&map, key, value); },
        [&](auto key, auto *value) { return map_find(&map, key, value); },
        [&](auto key) { return map_remove(&map, key); });
    map_end(&map);
    return 0;
}
