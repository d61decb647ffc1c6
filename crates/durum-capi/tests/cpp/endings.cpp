// Threads that end inside of transactions: what they did is taken back, and the others go on.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <vector>

#include "place.hpp"

namespace test_endings {

struct pair {
    durum::lr::persist<std::uint64_t> left;
    durum::lr::persist<std::uint64_t> right;
};

} // namespace test_endings

DURUM_DESCRIBE(test_endings::pair, left, right)

namespace test_endings {

/// Says that it was destroyed: an ending thread leaves its functions in order.
struct witness {
    int &destroyed;
    ~witness() { destroyed++; }
};

/// Runs `body` on a thread of its own; what who joins it is told.
void *joined(const std::function<void()> &body) {
    pthread_t thread;
    const auto run = [](void *argument) -> void * {
        (*static_cast<const std::function<void()> *>(argument))();
        return nullptr;
    };
    EXPECT_EQ(pthread_create(&thread, nullptr, run, const_cast<std::function<void()> *>(&body)), 0);
    void *told = nullptr;
    EXPECT_EQ(pthread_join(thread, &told), 0);
    return told;
}

/// As often as it takes until this thread is known to be alone, and updates itself. Not where the
/// system has no membarrier, which is told.
template <class Pool> bool is_alone(Pool &pool) {
    for (int times = 0; times < 10000; times++) {
        if (durum_update_begin_alone(pool.handle()) == DURUM_OK) {
            EXPECT_EQ(durum_update_end_alone(pool.handle(), 0), DURUM_OK);
            return true;
        }
        pool.update_transaction([] {});
    }
    return false;
}

template <class Pool> pair *made_in(Pool &pool) {
    return pool.update_transaction([&] {
        auto *made = pool.template alloc<pair>();
        made->left = 1;
        made->right = 1;
        return made;
    });
}

/// Updates and reads go on, and no half of an update is there.
template <class Pool> void goes_on(Pool &pool, pair *object, std::uint64_t expected) {
    const auto look = [&] {
        const bool is_as_expected = pool.read_transaction(
            [&] { return object->left == expected && object->right == expected; });
        EXPECT_TRUE(is_as_expected);
    };
    look();
    joined(look);
    for (int times = 0; times < 3; times++) {
        joined([&] {
            pool.update_transaction([&] {
                object->left += 1;
                object->right += 1;
            });
        });
        expected++;
        look();
        joined(look);
    }
    pool.update_transaction([&] {
        object->left -= 3;
        object->right -= 3;
    });
}

TEST(Endings, OfAThreadInItsUpdate) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    int destroyed = 0;
    const auto ends = [&] {
        witness outside{destroyed};
        pool.update_transaction([&] {
            witness inside{destroyed};
            object->left = 7;
            durum::alloc<pair>();
            pthread_exit(&destroyed);
        });
        ADD_FAILURE() << "the thread goes on";
    };
    EXPECT_EQ(joined(ends), PTHREAD_CANCELED);
    EXPECT_EQ(destroyed, 2);
    goes_on(pool, object, 1);
    bool is_own = false;
    void *told = joined([&] {
        is_own = is_alone(pool);
        ends();
    });
    EXPECT_EQ(told, is_own ? &destroyed : PTHREAD_CANCELED);
    EXPECT_EQ(destroyed, 4);
    goes_on(pool, object, 1);
}

/// The exception of a function takes its update back, among others and where the thread runs it
/// itself.
template <class F> void is_taken_back_when_it_throws(F &&change) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    for (int times = 0; times < 2; times++) {
        const auto throws = [&] {
            change(pool, object);
            throw std::runtime_error("as told");
        };
        EXPECT_THROW(pool.update_transaction(throws), std::runtime_error);
        EXPECT_EQ(durum_tx_level(), 0);
        EXPECT_EQ(durum_update_end(pool.handle(), 1), DURUM_E_UNBALANCED);
        EXPECT_EQ(pool.update_transaction([&] { return object->left + 1; }), 2u);
        is_alone(pool);
    }
    goes_on(pool, object, 1);
}

TEST(Endings, OfAnUpdateByAnException) {
    is_taken_back_when_it_throws([](durum::pool &, pair *object) { object->left = 7; });
}

/// What the function has begun and left open ends with it.
TEST(Endings, OfAnUpdateWithAnotherOneOpenInIt) {
    is_taken_back_when_it_throws([](durum::pool &pool, pair *object) {
        pool.begin_transaction();
        object->left = 7;
    });
}

TEST(Endings, OfAThreadInUpdatesAndReadsInOneAnother) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    int destroyed = 0;
    joined([&] {
        witness outside{destroyed};
        pool.update_transaction([&] {
            witness between{destroyed};
            object->left = 7;
            try {
                pool.read_transaction([&] {
                    pool.update_transaction([&] {
                        witness inside{destroyed};
                        object->right = 8;
                        pthread_exit(nullptr);
                    });
                });
            } catch (const std::exception &) {
                ADD_FAILURE() << "an end is no exception";
            }
        });
    });
    EXPECT_EQ(destroyed, 3);
    goes_on(pool, object, 1);
}

TEST(Endings, OfAThreadInARead) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    int destroyed = 0;
    joined([&] {
        witness outside{destroyed};
        pool.read_transaction([&] {
            witness inside{destroyed};
            pthread_exit(nullptr);
        });
    });
    EXPECT_EQ(destroyed, 2);
    goes_on(pool, object, 1);
}

TEST(LeftRightEndings, OfAThreadThatReadsACopy) {
    place there;
    durum::lr::pool pool(there.path());
    pair *object = made_in(pool);
    const auto ends = [&] {
        pool.read_transaction([&] {
            EXPECT_EQ(object->left, 1u);
            pool.read_transaction([] { pthread_exit(nullptr); });
        });
    };
    joined(ends);
    goes_on(pool, object, 1);
    pool.update_transaction([&] {
        object->left = 5;
        joined(ends); // in the other copy
        object->left = 1;
    });
    goes_on(pool, object, 1);
    joined([&] {
        pool.update_transaction([&] {
            object->left = 7;
            pthread_exit(nullptr);
        });
    });
    goes_on(pool, object, 1);
}

/// An exception that is being handled is nobody's business.
TEST(Endings, OfAThreadThatHandlesAnException) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    joined([&] {
        try {
            throw std::runtime_error("as told");
        } catch (const std::exception &) {
            pool.update_transaction([&] {
                object->left = 7;
                try {
                    throw 5;
                } catch (int) {
                    pthread_exit(nullptr);
                }
            });
        }
    });
    goes_on(pool, object, 1);
}

TEST(Endings, OfAThreadBetweenBeginAndEnd) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    joined([&] {
        pool.begin_transaction();
        object->left = 7;
        pool.begin_transaction();
        object->right = 8;
        pthread_exit(nullptr);
    });
    goes_on(pool, object, 1);
}

/// One thread runs another one's update, which ends the other one, and only that.
TEST(Endings, OfAThreadWhoseUpdateAnotherOneRuns) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    bool is_combined = false;
    std::uint64_t kept = 1;
    // Whether the second thread announces in time is up to the system.
    for (int tries = 0; tries < 100 && !is_combined; tries++) {
        int destroyed = 0;
        std::atomic<bool> goes_on_behind{false};
        std::thread::id ran_on;
        std::thread ending;
        pool.update_transaction([&] {
            ending = std::thread([&] {
                witness outside{destroyed};
                pool.update_transaction([&] {
                    witness inside{destroyed};
                    ran_on = std::this_thread::get_id();
                    object->left = 100;
                    pthread_exit(nullptr);
                });
                goes_on_behind = true;
            });
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            object->left += 1;
            object->right += 1;
        });
        kept++;
        ending.join();
        EXPECT_FALSE(goes_on_behind);
        EXPECT_EQ(destroyed, 2);
        is_combined = ran_on == std::this_thread::get_id();
    }
    EXPECT_TRUE(is_combined);
    goes_on(pool, object, kept);
}

TEST(Endings, OfManyThreads) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    constexpr std::uint64_t threads = 8;
    constexpr std::uint64_t rounds = 40;
    constexpr std::uint64_t updates = 5;
    std::vector<std::thread> all;
    for (std::uint64_t thread = 0; thread < threads; thread++) {
        all.emplace_back([&, thread] {
            for (std::uint64_t round = 0; round < rounds; round++) {
                joined([&] {
                    for (std::uint64_t done = 0; done < updates; done++) {
                        pool.update_transaction([&] {
                            object->left += 1;
                            object->right += 1;
                        });
                    }
                    if ((round + thread) % 2 == 0) {
                        pool.read_transaction([&] { pthread_exit(nullptr); });
                    }
                    pool.update_transaction([&] {
                        object->left += 1000;
                        pthread_exit(nullptr);
                    });
                });
            }
        });
    }
    for (auto &thread : all) {
        thread.join();
    }
    goes_on(pool, object, 1 + threads * rounds * updates);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sees_stacks = true;
#elif defined(__has_feature)
constexpr bool sees_stacks = __has_feature(address_sanitizer);
#else
constexpr bool sees_stacks = false;
#endif

/// A cancelled thread ends behind its update, and in its read.
TEST(Endings, OfAThreadThatIsCancelled) {
    if (sees_stacks) {
        GTEST_SKIP() << "AddressSanitizer knows the stack of a cancelled thread as still in use";
    }
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pair *object = made_in(pool);
    int updates = 0;
    const auto is_cancelled = [&] {
        pool.update_transaction([&] {
            object->left = 2;
            pthread_cancel(pthread_self());
            pthread_testcancel();
            object->right = 2;
        });
        updates++;
        pthread_testcancel();
        ADD_FAILURE() << "the thread goes on";
    };
    EXPECT_EQ(joined(is_cancelled), PTHREAD_CANCELED);
    goes_on(pool, object, 2);
    void *told = joined([&] {
        is_alone(pool);
        is_cancelled();
    });
    EXPECT_EQ(told, PTHREAD_CANCELED);
    EXPECT_EQ(updates, 2);
    goes_on(pool, object, 2);
    told = joined([&] {
        pool.read_transaction([&] {
            pthread_cancel(pthread_self());
            pthread_testcancel();
            ADD_FAILURE() << "the read goes on";
        });
    });
    EXPECT_EQ(told, PTHREAD_CANCELED);
    goes_on(pool, object, 2);
}

} // namespace test_endings
