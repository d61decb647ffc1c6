// persist<T> and pools: each kind of store is announced, exceptions take back, threads share.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "place.hpp"

using durum::persist;

namespace test {

enum class color : std::uint8_t { red, green };

struct point {
    int x;
    int y;
    bool operator==(const point &other) const { return x == other.x && y == other.y; }
};

struct everything {
    persist<int> number;
    persist<double> real;
    persist<bool> flag;
    persist<color> hue;
    persist<std::uint64_t[4]> row;
    persist<everything *> self;
    persist<point> place;
    persist<std::array<short, 4>> shorts;
    persist<int *> numbers;
};

struct counter {
    persist<std::uint64_t> value;
    persist<std::uint64_t> twice;
};

struct picky {
    persist<int> value;
    explicit picky(int wanted) : value(wanted) {
        if (wanted < 0) {
            throw std::out_of_range("negative");
        }
    }
};

// Members of both kinds of access, in a template.
template <class T> class box {
  public:
    explicit box(const T &value) : value_(value) {}
    ~box() { destroyed()++; }
    const T &get() const { return value_; }
    void set(const T &value) { value_ = value; }
    static int &destroyed() {
        static int count = 0;
        return count;
    }
    persist<box *> next{nullptr};

  private:
    persist<T> value_;
    DURUM_MEMBERS(box, next, value_)
};

} // namespace test

DURUM_DESCRIBE(test::point, x, y)
DURUM_DESCRIBE_AS(test::everything, "test.everything", number, real, flag, hue, row, self, place,
                  shorts, numbers)
DURUM_DESCRIBE(test::picky, value)
DURUM_DESCRIBE(test::counter, value, twice)

namespace test {

int code_of(const std::function<void()> &body) {
    try {
        body();
    } catch (const durum::error &error) {
        EXPECT_STRNE(error.what(), "");
        return error.code();
    }
    return DURUM_OK;
}

TEST(Persist, ATransactionInFlightIsWaitedFor) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    auto *both = pool.update_transaction([&] {
        auto *made = pool.alloc<counter>();
        pool.put_object(0, made);
        return made;
    });
    std::vector<durum::in_flight> flights;
    for (int round = 0; round < 5; round++) {
        flights.push_back(pool.transaction_in_flight([&] {
            both->value += 1;
            both->twice += 2;
        }));
    }
    for (const durum::in_flight &flight : flights) {
        flight.wait();
        // What a coroutine asks.
        EXPECT_TRUE(flight.await_ready());
    }
    EXPECT_THROW((void)pool.transaction_in_flight([&] {
        both->value = 100;
        throw std::out_of_range("taken back");
    }),
                 std::out_of_range);
    EXPECT_EQ(both->value, 5u);
    EXPECT_EQ(both->twice, 10u);
    EXPECT_EQ(code_of([&] { both->value = 1; }), DURUM_E_NO_TRANSACTION);
}

TEST(Persist, EachKindOfStoreIsTakenBack) {
    place there;
    // Looks for stores that nobody announced.
    durum::pool pool(there.path(), "pool", engine_options(DURUM_POOL_CHECK_STORES));
    auto *all = pool.update_transaction([&] {
        auto *made = pool.alloc<everything>();
        pool.put_object(0, made);
        return made;
    });
    const auto change = [&] {
        all->number = 7;
        all->number += 3;
        all->number -= 1;
        all->number *= 4;
        all->number /= 2;
        all->number %= 10;
        all->number <<= 3;
        all->number |= 1;
        all->number ^= 3;
        all->number &= 0xff;
        all->number >>= 1;
        EXPECT_EQ(++all->number, 34);
        EXPECT_EQ(all->number++, 34);
        EXPECT_EQ(--all->number, 34);
        EXPECT_EQ(all->number--, 34);
        all->real = all->number * 0.5;
        all->flag = true;
        all->hue = color::green;
        for (auto &element : all->row) {
            element = 5u;
        }
        all->row[2] = all->row[1] + 1;
        all->self = all;
        all->self->self->place = point{1, 2};
        all->shorts = std::array<short, 4>{1, 2, 3, 4};
        all->numbers = pool.alloc_array<int>(10);
        swap(all->row[0], all->row[2]);
    };
    const auto before = [&] {
        EXPECT_EQ(all->number, 0);
        EXPECT_EQ(all->real, 0.0);
        EXPECT_FALSE(all->flag);
        EXPECT_EQ(all->hue, color::red);
        EXPECT_EQ(all->row[0] + all->row[1] + all->row[2] + all->row[3], 0u);
        EXPECT_TRUE(all->self == nullptr);
        EXPECT_TRUE(all->place == (point{0, 0}));
        EXPECT_EQ(all->shorts.get()[3], 0);
        EXPECT_FALSE(all->numbers);
    };
    before();
    EXPECT_THROW(pool.update_transaction([&] {
        change();
        throw std::runtime_error("not kept");
    }),
                 std::runtime_error);
    before();
    pool.update_transaction(change);
    EXPECT_EQ(all->number, 33);
    EXPECT_EQ(all->real, 16.5);
    EXPECT_EQ(all->row[0], 6u);
    EXPECT_EQ(all->place->y, 2);
    EXPECT_EQ((*all->self).shorts->at(3), 4);
    EXPECT_TRUE(all->place != (point{0, 0}));
}

TEST(Persist, AStoreOutsideOfAnUpdateIsAnError) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    auto *made = durum::update_transaction([] { return durum::alloc<counter>(); });
    EXPECT_EQ(code_of([&] { made->value = 1; }), DURUM_E_NO_TRANSACTION);
    EXPECT_EQ(code_of([&] { durum::read_transaction([&] { made->value = 1; }); }),
              DURUM_E_NO_TRANSACTION);
    EXPECT_EQ(code_of([&] { durum::alloc<counter>(); }), DURUM_E_NO_TRANSACTION);
    EXPECT_EQ(code_of([&] { durum::free(made); }), DURUM_E_NO_TRANSACTION);
    EXPECT_EQ(made->value, 0u);
    // Elsewhere it is a number like any other.
    counter local{};
    local.value = 3;
    pool.update_transaction([&] { local.value += 1; });
    EXPECT_EQ(local.value, 4u);
}

TEST(Pool, ObjectsAreThereWhenItIsOpenedAgain) {
    place there;
    {
        durum::pool pool(there.path(), "pool", engine_options());
        pool.update_transaction([&] {
            auto *made = pool.alloc<box<int>>(5);
            made->next = made;
            pool.put_object(99, made);
        });
    }
    durum::pool pool(there.path());
    auto *found = pool.get_object<box<int>>(99);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->get(), 5);
    EXPECT_EQ(found->next, found);
    EXPECT_EQ(code_of([&] { pool.get_object<counter>(99); }), DURUM_E_ROOT_TYPE);
    EXPECT_EQ(code_of([&] { pool.get_object<counter>(100); }), DURUM_E_ARGUMENT);
    const int before = box<int>::destroyed();
    pool.update_transaction([&] {
        pool.free(found);
        pool.put_object(99, nullptr);
        pool.free(static_cast<box<int> *>(nullptr));
    });
    EXPECT_EQ(box<int>::destroyed(), before + 1);
    EXPECT_EQ(code_of([&] { pool.update_transaction([&] { pool.free(found); }); }),
              DURUM_E_NOT_ALLOCATED);
}

TEST(Pool, ObjectsOfPlainTypesAreToldApart) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pool.update_transaction([&] {
        pool.put_object(0, pool.alloc<persist<int>>(3));
        pool.put_object(1, pool.alloc<persist<double>>(0.5));
        pool.put_object(2, pool.alloc<persist<int *>>(nullptr));
        pool.put_object(3, pool.alloc<persist<long[4]>>());
        pool.put_object(4, pool.alloc<char>('c'));
    });
    EXPECT_EQ(*pool.get_object<int>(0), 3);
    EXPECT_EQ(*pool.get_object<persist<int>>(0), 3);
    EXPECT_EQ(*pool.get_object<const double>(1), 0.5);
    EXPECT_TRUE(*pool.get_object<persist<int *>>(2) == nullptr);
    EXPECT_EQ((*pool.get_object<persist<std::array<long long, 4>>>(3))->at(3), 0);
    EXPECT_EQ(*pool.get_object<char>(4), 'c');
    const auto refused = [&](std::function<void()> body) {
        EXPECT_EQ(code_of(body), DURUM_E_ROOT_TYPE);
    };
    refused([&] { pool.get_object<int>(1); });
    refused([&] { pool.get_object<double>(0); });
    refused([&] { pool.get_object<long>(1); });
    refused([&] { pool.get_object<unsigned>(0); });
    refused([&] { pool.get_object<int>(2); });
    refused([&] { pool.get_object<std::uintptr_t>(2); });
    refused([&] { pool.get_object<long>(3); });
    refused([&] { pool.get_object<long[5]>(3); });
    refused([&] { pool.get_object<int>(4); });
    refused([&] { pool.get_object<counter>(0); });
    EXPECT_EQ(pool.get_object<int>(5), nullptr);

    // What older headers have left says no more than that the type is a plain one.
    auto *objects = static_cast<durum::detail::objects *>(durum_root(
        pool.handle(), durum::type_of<durum::detail::objects>(), sizeof(durum::detail::objects)));
    ASSERT_NE(objects, nullptr);
    pool.update_transaction([&] { objects->types[0] = 0u; });
    EXPECT_EQ(*pool.get_object<int>(0), 3);
    EXPECT_EQ(*pool.get_object<unsigned>(0), 3u);
    refused([&] { pool.get_object<counter>(0); });
    refused([&] { pool.get_object<int *>(0); });
}

TEST(Pool, TransactionsInTransactions) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    auto *made = pool.update_transaction([&] { return pool.alloc<counter>(); });
    pool.begin_transaction();
    made->value = 1;
    durum::begin_transaction();
    made->value = 2;
    durum::end_transaction();
    EXPECT_EQ(pool.read_transaction([&] { return made->value.get(); }), 2u);
    pool.abort_transaction();
    EXPECT_EQ(made->value, 0u);
    // An inner one that fails takes the outer one along, also where its exception is caught.
    EXPECT_EQ(code_of([&] {
                  pool.update_transaction([&] {
                      made->value = 3;
                      try {
                          pool.update_transaction([&] { throw 5; });
                      } catch (int) {
                      }
                  });
              }),
              DURUM_E_ABORTED);
    EXPECT_EQ(made->value, 0u);
    EXPECT_EQ(code_of([&] { pool.read_transaction([&] { pool.update_transaction([] {}); }); }),
              DURUM_E_UPDATE_IN_READ);
    EXPECT_EQ(code_of([&] { pool.end_transaction(); }), DURUM_E_UNBALANCED);
    // The levels of an update end with it.
    pool.update_transaction([&] {
        EXPECT_EQ(durum_tx_commit(), DURUM_E_UNBALANCED);
        EXPECT_EQ(durum_tx_rollback(), DURUM_E_UNBALANCED);
        made->value = 4;
    });
    EXPECT_EQ(made->value, 4u);
}

TEST(Pool, AConstructorThatThrowsLeavesNoObject) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    EXPECT_THROW(pool.update_transaction([&] { pool.alloc<picky>(-1); }), std::out_of_range);
    auto *kept = pool.update_transaction([&] {
        EXPECT_THROW(pool.alloc<picky>(-1), std::out_of_range);
        return pool.alloc<picky>(1);
    });
    EXPECT_EQ(kept->value, 1);
}

TEST(Pool, ThreadsShareIt) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    auto *made = pool.update_transaction([&] {
        auto *object = pool.alloc<counter>();
        pool.put_object(1, object);
        return object;
    });
    constexpr int threads = 8;
    constexpr int rounds = 300;
    std::atomic<int> thrown{0};
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; thread++) {
        all.emplace_back([&, thread] {
            for (int round = 0; round < rounds; round++) {
                try {
                    const auto value = pool.update_transaction([&] {
                        ++made->value;
                        // Those that it runs for others have this pool as the current one, too.
                        durum::free(durum::alloc<counter>());
                        if (round % 7 == thread % 7) {
                            throw std::to_string(thread);
                        }
                        made->twice += 2;
                        return made->value.get();
                    });
                    EXPECT_GT(value, 0u);
                } catch (const std::string &whose) {
                    EXPECT_EQ(whose, std::to_string(thread));
                    thrown++;
                }
                const bool is_even = pool.read_transaction(
                    [&] { return made->twice.get() == 2 * made->value.get(); });
                EXPECT_TRUE(is_even);
            }
        });
    }
    for (auto &thread : all) {
        thread.join();
    }
    EXPECT_GT(thrown, 0);
    EXPECT_EQ(made->value, static_cast<std::uint64_t>(threads * rounds - thrown));
}

TEST(Pool, OneThreadMayDoWithout) {
    place there;
    durum::pool pool(there.path(), "pool", engine_options(durum::single_threaded));
    auto *made = pool.update_transaction([&] { return pool.alloc<counter>(); });
    pool.begin_transaction();
    made->value = 1;
    // Nobody to wait for.
    pool.read_transaction([&] { pool.update_transaction([&] { made->value = 2; }); });
    pool.end_transaction();
    EXPECT_EQ(made->value, 2u);
}

} // namespace test
