// The structures of this folder at work, to be killed and looked at again; and what their updates
// cost.
//
//   structures STORE ENGINE STRUCTURE run STEPS
//       goes on where it was, and says each step once it is durable
//   structures STORE ENGINE STRUCTURE check
//       looks whether the structure holds what its steps have put there; prints how many they are
//   structures STORE ENGINE STRUCTURE histogram
//       how many updates write back how many cache lines
//
// ENGINE: default, hybrid, twin, twin-basic, twin-lr (readers do not wait). STRUCTURE: list, hash,
// fixed, tree, swaps.

#include "hash_map.hpp"
#include "list_set.hpp"
#include "swaps.hpp"
#include "tree_map.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using key = std::uint64_t;
using contents = std::map<key, key>;

constexpr key keys = 100;

/// What step number `step` does, the same in every run.
struct action {
    key at;
    bool is_put;

    explicit action(std::uint64_t step) {
        std::uint64_t mixed = (step + 1) * 0x9e3779b97f4a7c15;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
        mixed ^= mixed >> 31;
        at = mixed % keys;
        is_put = mixed >> 40 & 1;
    }
};

/// A structure and the number of steps that it has seen.
template <class S> struct tested {
    durum::persist<std::uint64_t> steps{0};
    durum::persist<S *> structure{nullptr};
    DURUM_MEMBERS(tested, steps, structure)
};

template <class Reads> struct list {
    using type = list_set<key, Reads>;
    static type *make() { return durum::alloc<type>(); }
    static void step(type &set, std::uint64_t number) {
        const action now(number);
        now.is_put ? set.add(now.at) : set.remove(now.at);
    }
    static void model(contents &all, std::uint64_t number) {
        const action now(number);
        now.is_put ? void(all[now.at] = 0) : void(all.erase(now.at));
    }
    static bool read(const type &set, contents &all) {
        return set.for_each([&](key k) { all[k] = 0; });
    }
};

template <class Map> struct map_of {
    using type = Map;
    static type *make() { return durum::alloc<type>(); }
    static void step(type &map, std::uint64_t number) {
        const action now(number);
        now.is_put ? map.put(now.at, number) : map.remove(now.at);
    }
    static void model(contents &all, std::uint64_t number) {
        const action now(number);
        now.is_put ? void(all[now.at] = number) : void(all.erase(now.at));
    }
    static bool read(const type &map, contents &all) {
        return map.for_each([&](key k, key v) { all[k] = v; });
    }
};

template <class Reads> struct swaps {
    using type = swap_array<Reads>;
    static type *make() { return durum::alloc<type>(keys); }
    static void step(type &array, std::uint64_t number) {
        std::uint64_t next = 2 * number;
        array.swap(1, [&] { return action(next++).at; });
    }
    static void model(contents &all, std::uint64_t number) {
        for (key at = all.size(); at < keys; at++) {
            all[at] = at;
        }
        std::swap(all[action(2 * number).at], all[action(2 * number + 1).at]);
    }
    static bool read(const type &array, contents &all) {
        for (key at = 0; at < array.size(); at++) {
            all[at] = array.at(at);
        }
        return true;
    }
};

template <class How> tested<typename How::type> *find(durum::pool &pool) {
    using object = tested<typename How::type>;
    return pool.update_transaction([&] {
        auto *found = pool.get_object<object>(0);
        if (found == nullptr) {
            found = pool.alloc<object>();
            found->structure = How::make();
            pool.put_object(0, found);
        }
        return found;
    });
}

template <class How> void run(durum::pool &pool, std::uint64_t steps) {
    auto *all = find<How>(pool);
    for (std::uint64_t end = all->steps + steps; all->steps < end;) {
        pool.update_transaction([&] {
            How::step(*all->structure, all->steps);
            all->steps += 1;
        });
        std::printf("%llu\n", static_cast<unsigned long long>(all->steps.get()));
        std::fflush(stdout);
    }
}

template <class How> int check(durum::pool &pool) {
    auto *all = find<How>(pool);
    contents wanted;
    for (std::uint64_t step = 0; step < all->steps; step++) {
        How::model(wanted, step);
    }
    contents found;
    const bool is_whole = How::read(*all->structure, found);
    if (!is_whole || (all->steps > 0 && found != wanted)) {
        std::fprintf(stderr, "after %llu steps the structure is not what they make it\n",
                     static_cast<unsigned long long>(all->steps.get()));
        return 1;
    }
    std::printf("%llu\n", static_cast<unsigned long long>(all->steps.get()));
    return 0;
}

template <class How> void histogram(durum::pool &pool) {
    auto *structure = pool.update_transaction([] { return How::make(); });
    constexpr std::uint64_t steps = 10000;
    std::map<std::uint64_t, unsigned> lines;
    durum_stats first{};
    durum_thread_stats(&first);
    durum_stats before = first;
    for (std::uint64_t step = 0; step < steps; step++) {
        How::step(*structure, step);
        durum_stats now{};
        durum_thread_stats(&now);
        lines[now.write_backs + now.streamed_lines - before.write_backs - before.streamed_lines]++;
        before = now;
    }
    unsigned most = 1;
    for (const auto &[count, times] : lines) {
        most = std::max(most, times);
    }
    for (const auto &[count, times] : lines) {
        std::printf("%5llu lines %6u updates %s\n", static_cast<unsigned long long>(count), times,
                    std::string(1 + 50 * std::size_t{times} / most, '#').c_str());
    }
    // Of those that change something: half of them write back no more than this.
    const std::uint64_t changes = steps - lines[0];
    std::uint64_t middle = 0;
    std::uint64_t seen = 0;
    for (const auto &[count, times] : lines) {
        if (count > 0 && 2 * seen < changes) {
            middle = count;
            seen += times;
        }
    }
    std::printf("%llu updates, %llu with changes: %llu lines in the middle, %llu at most, %.2f "
                "fences for each update\n",
                static_cast<unsigned long long>(steps), static_cast<unsigned long long>(changes),
                static_cast<unsigned long long>(middle),
                static_cast<unsigned long long>(lines.rbegin()->first),
                static_cast<double>(before.fences - first.fences) / static_cast<double>(steps));
}

template <class How> int act(durum::pool &pool, int count, char **arguments) {
    const std::string what = arguments[4];
    if (what == "run" && count == 6) {
        run<How>(pool, std::strtoull(arguments[5], nullptr, 10));
        return 0;
    }
    if (what == "check") {
        return check<How>(pool);
    }
    if (what == "histogram") {
        histogram<How>(pool);
        return 0;
    }
    std::fprintf(stderr, "no such action: %s\n", what.c_str());
    return 2;
}

template <class Reads> int act_on(durum::pool &pool, int count, char **arguments) {
    const std::string structure = arguments[3];
    if (structure == "list") {
        return act<list<Reads>>(pool, count, arguments);
    }
    if (structure == "hash") {
        return act<map_of<hash_map<key, key, 0, Reads>>>(pool, count, arguments);
    }
    if (structure == "fixed") {
        return act<map_of<fixed_map<key, key, Reads>>>(pool, count, arguments);
    }
    if (structure == "tree") {
        return act<map_of<tree_map<key, key, Reads>>>(pool, count, arguments);
    }
    if (structure == "swaps") {
        return act<swaps<Reads>>(pool, count, arguments);
    }
    std::fprintf(stderr, "no such structure: %s\n", structure.c_str());
    return 2;
}

int main(int count, char **arguments) try {
    if (count < 5) {
        std::fprintf(stderr,
                     "usage: structures STORE ENGINE STRUCTURE run STEPS|check|histogram\n");
        return 2;
    }
    if (std::strcmp(arguments[2], "twin-lr") == 0) {
        durum::lr::pool pool(arguments[1], arguments[3]);
        return act_on<without_waiting>(pool, count, arguments);
    }
    durum::options how;
    if (std::strcmp(arguments[2], "hybrid") == 0) {
        how.engine = DURUM_ENGINE_HYBRID;
    }
    if (std::strcmp(arguments[2], "twin") == 0) {
        how.engine = DURUM_ENGINE_TWIN;
    }
    if (std::strcmp(arguments[2], "twin-basic") == 0) {
        how.engine = DURUM_ENGINE_TWIN;
        how.flags = durum::basic_copies;
    }
    durum::pool pool(arguments[1], arguments[3], how);
    return act_on<with_lock>(pool, count, arguments);
} catch (const std::exception &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}
