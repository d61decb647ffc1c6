// The structures of examples/cpp against those of the standard library, with updates that fail and
// threads.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "hash_map.hpp"
#include "list_set.hpp"
#include "place.hpp"
#include "swaps.hpp"
#include "tree_map.hpp"

namespace {

using key = std::uint64_t;

/// Makes a T in a pool, and takes it out again in the end.
template <class T, class Pool = durum::pool> class made {
  public:
    template <class... Args>
    explicit made(Args... args)
        : pool_(place_.path(), "pool", engine_options()),
          object_(pool_.update_transaction([&] { return pool_.template alloc<T>(args...); })) {}
    ~made() {
        pool_.update_transaction([&] { pool_.free(object_); });
    }
    made(const made &) = delete;
    made &operator=(const made &) = delete;
    T *operator->() const { return object_; }
    Pool &pool() { return pool_; }

  private:
    place place_;
    Pool pool_;
    T *object_;
};

struct failure {};

template <class Map, class Pool = durum::pool> void behaves_like_a_map(key keys, int steps) {
    made<Map, Pool> map;
    std::map<key, key> model;
    std::mt19937_64 random(7);
    for (int step = 0; step < steps; step++) {
        const key at = random() % keys;
        const key value = random();
        switch (random() % 8) {
        case 0:
        case 1:
        case 2:
            EXPECT_EQ(map->put(at, value), model.insert_or_assign(at, value).second);
            break;
        case 3:
        case 4:
            EXPECT_EQ(map->remove(at), model.erase(at) > 0);
            break;
        case 5:
            // Several at once, none of which is kept.
            EXPECT_THROW(map.pool().update_transaction([&] {
                for (key more = 0; more < 5; more++) {
                    map->put(random() % keys, value);
                    map->remove(random() % keys);
                }
                throw failure();
            }),
                         failure);
            break;
        default: {
            const auto found = model.find(at);
            EXPECT_EQ(map->get(at),
                      found == model.end() ? std::nullopt : std::optional<key>(found->second));
        }
        }
        if (step % 64 == 0 || step + 1 == steps) {
            std::map<key, key> found;
            ASSERT_TRUE(map->for_each([&](key k, key v) { found[k] = v; })) << step;
            ASSERT_EQ(found, model) << step;
            ASSERT_EQ(map->size(), model.size());
        }
    }
}

TEST(Structures, TheTreeBehavesLikeAMap) {
    behaves_like_a_map<tree_map<key, key>>(40, 4000);
    behaves_like_a_map<tree_map<key, key>>(1000, 4000);
}

TEST(Structures, TheHashMapBehavesLikeAMap) {
    behaves_like_a_map<hash_map<key, key>>(100, 2000);
    behaves_like_a_map<hash_map<key, key>>(3000, 4000);
}

TEST(Structures, TheFixedMapBehavesLikeAMap) {
    behaves_like_a_map<fixed_map<key, key>>(100, 1000);
}

TEST(Structures, TheHashMapGrowsAndTheFixedOneDoesNot) {
    made<hash_map<key, key>> growing;
    for (key at = 0; at < 100; at++) {
        growing->put(at, at);
    }
    EXPECT_EQ(growing->buckets(), 128u);
    made<fixed_map<key, key>> fixed;
    for (key at = 0; at < 100; at++) {
        durum::use(fixed.pool());
        fixed->put(at, at);
    }
    EXPECT_EQ(fixed->buckets(), 2048u);
}

template <class Set, class Pool = durum::pool> void behaves_like_a_set() {
    made<Set, Pool> list;
    std::set<key> model;
    std::mt19937_64 random(9);
    for (int step = 0; step < 3000; step++) {
        const key at = random() % 60;
        switch (random() % 3) {
        case 0:
            EXPECT_EQ(list->add(at), model.insert(at).second);
            break;
        case 1:
            EXPECT_EQ(list->remove(at), model.erase(at) > 0);
            break;
        default:
            EXPECT_EQ(list->contains(at), model.count(at) > 0);
        }
        std::set<key> found;
        ASSERT_TRUE(list->for_each([&](key k) { found.insert(k); }));
        ASSERT_EQ(found, model);
        ASSERT_EQ(list->size(), model.size());
    }
}

TEST(Structures, TheListBehavesLikeASet) {
    behaves_like_a_set<list_set<key>>();
}

TEST(LeftRightStructures, BehaveLikeThoseOfTheLibrary) {
    behaves_like_a_map<tree_map<key, key, without_waiting>, durum::lr::pool>(40, 2000);
    behaves_like_a_map<hash_map<key, key, 0, without_waiting>, durum::lr::pool>(300, 2000);
    behaves_like_a_map<fixed_map<key, key, without_waiting>, durum::lr::pool>(100, 1000);
    behaves_like_a_set<list_set<key, without_waiting>, durum::lr::pool>();
}

template <class Array, class Pool = durum::pool> void swaps_lose_nothing() {
    made<Array, Pool> array(1000);
    std::mt19937_64 random(11);
    for (unsigned round = 0; round < 300; round++) {
        array->swap(1 + round % 128, random);
    }
    std::set<key> found;
    for (key at = 0; at < array->size(); at++) {
        found.insert(array->at(at));
    }
    EXPECT_EQ(found.size(), 1000u);
}

TEST(Structures, SwapsLoseNothing) {
    swaps_lose_nothing<swap_array<>>();
}

TEST(LeftRightStructures, SwapsLoseNothing) {
    swaps_lose_nothing<swap_array<without_waiting>, durum::lr::pool>();
}

TEST(Structures, ThreadsShareATree) {
    made<tree_map<key, key>> map;
    constexpr key threads = 4;
    std::vector<std::thread> all;
    for (key thread = 0; thread < threads; thread++) {
        all.emplace_back([&, thread] {
            // Keys of its own among those of the others: what it reads is what it has written.
            std::map<key, key> model;
            std::mt19937_64 random(thread);
            for (int step = 0; step < 1500; step++) {
                const key at = random() % 50 * threads + thread;
                if (random() % 2 == 0) {
                    EXPECT_EQ(map->put(at, random.operator()() & 0xff), model.count(at) == 0);
                    model[at] = *map->get(at);
                } else {
                    EXPECT_EQ(map->remove(at), model.erase(at) > 0);
                }
                const auto found = model.find(at);
                EXPECT_EQ(map->get(at),
                          found == model.end() ? std::nullopt : std::optional<key>(found->second));
            }
        });
    }
    for (auto &thread : all) {
        thread.join();
    }
    EXPECT_TRUE(map->for_each([](key, key) {}));
}

/// Readers beside a writer. `update(step)` changes several places and tells the step in one of
/// them; `look()` sees whether they belong together and returns the step: time does not go back.
template <class Update, class Look> void readers_see_whole_states(Update &&update, Look &&look) {
    std::atomic<bool> ended{false};
    std::atomic<std::uint64_t> seen{0};
    std::vector<std::thread> readers;
    for (int reader = 0; reader < 2; reader++) {
        readers.emplace_back([&] {
            std::uint64_t last = 0;
            while (!ended) {
                const std::uint64_t now = look();
                EXPECT_GE(now, last);
                last = now;
                seen++;
                if (::testing::Test::HasFailure()) {
                    return;
                }
            }
        });
    }
    for (std::uint64_t step = 1; step <= 200 || seen < 1000; step++) {
        update(step);
        if (::testing::Test::HasFailure()) {
            break;
        }
    }
    ended = true;
    for (auto &reader : readers) {
        reader.join();
    }
}

TEST(LeftRightStructures, ReadersOfATreeBesideAWriter) {
    made<tree_map<key, key, without_waiting>, durum::lr::pool> map;
    std::mt19937_64 random(5);
    const auto update = [&](std::uint64_t step) {
        map.pool().update_transaction([&] {
            for (int times = 0; times < 3; times++) {
                // In pairs, which no reader finds apart.
                const key at = 2 + 2 * (random() % 100);
                map->get(at) ? map->remove(at) : map->put(at, step);
                map->get(at + 1) ? map->remove(at + 1) : map->put(at + 1, step);
            }
            map->put(0, step);
        });
    };
    const auto look = [&] {
        return durum::lr::read_transaction([&] {
            std::map<key, key> found;
            EXPECT_TRUE(map->for_each([&](key at, key value) { found[at] = value; }));
            EXPECT_EQ(map->size(), found.size());
            const key now = map->get(0).value_or(0);
            for (const auto &[at, value] : found) {
                EXPECT_LE(value, now);
                EXPECT_EQ(found.count(at < 2 ? at : at ^ 1), 1u) << at;
                EXPECT_EQ(map->get(at), value);
            }
            return now;
        });
    };
    readers_see_whole_states(update, look);
}

TEST(LeftRightStructures, ReadersOfTwoListsBesideAWriter) {
    using list = list_set<key, without_waiting>;
    made<list, durum::lr::pool> left;
    list *right = left.pool().update_transaction([&] { return left.pool().alloc<list>(); });
    constexpr key keys = 40;
    left.pool().update_transaction([&] {
        for (key at = 1; at <= keys; at++) {
            left->add(at);
        }
        right->add(1000);
    });
    std::mt19937_64 random(6);
    const auto update = [&](std::uint64_t step) {
        left.pool().update_transaction([&] {
            const key at = 1 + random() % keys;
            left->remove(at) ? right->add(at) : (right->remove(at) && left->add(at));
            right->remove(1000 + step - 1);
            right->add(1000 + step);
        });
    };
    const auto look = [&] {
        return durum::lr::read_transaction([&] {
            std::multiset<key> found;
            EXPECT_TRUE(left->for_each([&](key at) { found.insert(at); }));
            EXPECT_TRUE(right->for_each([&](key at) { found.insert(at); }));
            EXPECT_EQ(found.size(), keys + 1);
            EXPECT_EQ(left->size() + right->size(), keys + 1);
            key expected = 1;
            for (const key at : found) {
                EXPECT_TRUE(at == expected || at >= 1000) << at;
                expected++;
            }
            return *found.rbegin() - 1000;
        });
    };
    readers_see_whole_states(update, look);
    left.pool().update_transaction([&] { left.pool().free(right); });
}

} // namespace
