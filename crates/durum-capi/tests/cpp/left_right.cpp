// durum::lr: readers see what is committed while an update is under way, and can change nothing.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include "place.hpp"

using durum::lr::persist;

namespace test_lr {

struct point {
    int x;
    int y;
    bool operator==(const point &other) const { return x == other.x && y == other.y; }
};

struct inner {
    persist<int> depth;
};

/// A member of each kind.
struct everything {
    persist<int> number;
    persist<double> real;
    persist<std::uint64_t[4]> row;
    persist<everything *> next;
    persist<everything *[2]> both;
    persist<point> place;
    persist<std::array<short, 4>> shorts;
    persist<persist<int> *> numbers;
    inner nested;
    inner many[2];
    std::array<inner, 2> more;
};

} // namespace test_lr

DURUM_DESCRIBE(test_lr::point, x, y)
DURUM_DESCRIBE(test_lr::inner, depth)
DURUM_DESCRIBE_AS(test_lr::everything, "test_lr.everything", number, real, row, next, both, place,
                  shorts, numbers, nested, many, more)

namespace test_lr {

/// In another thread, to its end.
template <class F> void elsewhere(F &&body) {
    std::thread(std::forward<F>(body)).join();
}

void fill(everything *all, int value) {
    all->number = value;
    all->real = value;
    for (auto &element : all->row) {
        element = static_cast<std::uint64_t>(value);
    }
    all->place = point{value, value};
    all->shorts = std::array<short, 4>{static_cast<short>(value), 0, 0, static_cast<short>(value)};
    all->numbers[1] = value;
    all->nested.depth = value;
    all->many[1].depth = value;
    all->more[1].depth = value;
}

void expect_filled(const everything *all, int value) {
    EXPECT_EQ(all->number, value);
    EXPECT_TRUE(all->number == value && !(all->number < value));
    EXPECT_EQ(all->number + 1, value + 1);
    EXPECT_EQ(all->real, value);
    for (const auto &element : all->row) {
        EXPECT_EQ(element, static_cast<std::uint64_t>(value));
    }
    EXPECT_EQ(all->row[3].get(), static_cast<std::uint64_t>(value));
    EXPECT_EQ(all->place->y, value);
    EXPECT_TRUE(all->place == (point{value, value}));
    EXPECT_EQ(all->shorts->at(3), value);
    EXPECT_EQ(all->numbers[1], value);
    EXPECT_EQ(*(all->numbers + 1), value);
    EXPECT_EQ(all->nested.depth, value);
    EXPECT_EQ(all->many[1].depth, value);
    EXPECT_EQ(all->more[1].depth, value);
    // A copy on the stack is a number like any other.
    const auto local = all->number;
    EXPECT_EQ(local, value);
}

struct opened {
    place there;
    durum::lr::pool pool{there.path()};
    everything *all = pool.update_transaction([&] {
        auto *made = pool.alloc<everything>();
        made->numbers = pool.alloc_array<persist<int>>(2);
        fill(made, 1);
        pool.put_object(0, made);
        return made;
    });
};

TEST(LeftRight, EachKindOfMemberIsReadInTheCopy) {
    opened its;
    everything *all = its.all;
    for (int round = 1; round < 4; round++) {
        const auto look = [&] {
            its.pool.read_transaction([&] {
                expect_filled(all, round);
                EXPECT_TRUE(all->next == nullptr);
                EXPECT_FALSE(all->both[1]);
                EXPECT_EQ(its.pool.get_object<everything>(0), all);
                EXPECT_EQ(its.pool.get_object<everything>(1), nullptr);
            });
        };
        its.pool.update_transaction([&] {
            fill(all, round + 1);
            auto *second = its.pool.alloc<everything>();
            second->number = 77;
            all->next = second;
            all->both[1] = second;
            its.pool.put_object(1, second);
            // The update stands still until this reader has come and gone: it waits for nobody.
            elsewhere(look);
            // Read by the update itself, it is a part of it.
            its.pool.read_transaction([&] {
                expect_filled(all, round + 1);
                EXPECT_EQ(all->next->number, 77);
                EXPECT_EQ((*all->both[1]).number, 77);
                EXPECT_EQ(durum::lr::get_object<everything>(1), second);
                its.pool.update_transaction([&] { second->number = 78; });
            });
            EXPECT_EQ(second->number, 78);
        });
        const auto committed = [&] {
            durum::lr::read_transaction([&] {
                expect_filled(all, round + 1);
                EXPECT_EQ(all->next->number, 78);
                EXPECT_EQ(all->both[1]->number, 78);
            });
        };
        committed();
        elsewhere(committed);
        its.pool.update_transaction([&] {
            durum::lr::free(all->next.get());
            all->next = nullptr;
            all->both[1] = nullptr;
            durum::lr::put_object(1, nullptr);
        });
    }
}

int code_of_refusal(const std::function<void()> &body) {
    try {
        body();
    } catch (const durum::error &error) {
        EXPECT_STRNE(error.what(), "");
        return error.code();
    }
    return DURUM_OK;
}

/// Whatever it tries, and whichever copy it reads.
void change_nothing(opened &its) {
    everything *all = its.all;
    place elsewhere;
    durum::lr::pool other(elsewhere.path());
    durum::options shadow_options;
    place third;
    durum::pool shadow(third.path(), "pool", shadow_options);
    its.pool.read_transaction([&] {
        const auto refused = [](int code, const std::function<void()> &body) {
            EXPECT_EQ(code_of_refusal(body), code);
        };
        refused(DURUM_E_NO_TRANSACTION, [&] { all->number = 9; });
        refused(DURUM_E_NO_TRANSACTION, [&] { all->number += 9; });
        refused(DURUM_E_NO_TRANSACTION, [&] { all->row[2] = 9u; });
        refused(DURUM_E_NO_TRANSACTION, [&] { all->next = all; });
        refused(DURUM_E_NO_TRANSACTION, [&] { all->numbers[0]++; });
        refused(DURUM_E_NO_TRANSACTION, [&] { swap(all->row[0], all->row[1]); });
        refused(DURUM_E_NO_TRANSACTION, [&] { its.pool.alloc<everything>(); });
        refused(DURUM_E_NO_TRANSACTION, [&] { durum::lr::free(all); });
        refused(DURUM_E_NO_TRANSACTION, [&] { its.pool.put_object(5, all); });
        // A place that was found by hand in the back copy is one of the pool, too.
        durum_copy copy{};
        const auto find = [](const durum_copy *found, void *to) {
            *static_cast<durum_copy *>(to) = *found;
            return DURUM_OK;
        };
        ASSERT_EQ(durum_pool_read_copy(its.pool.handle(), find, &copy), DURUM_OK);
        auto *back = reinterpret_cast<durum::persist<int> *>(
            reinterpret_cast<std::uintptr_t>(&all->number) + copy.size);
        refused(DURUM_E_NO_TRANSACTION, [&] { *back = 9; });
        EXPECT_EQ(all->number, 1);

        for (durum::pool *pool : {static_cast<durum::pool *>(&its.pool), &shadow}) {
            refused(DURUM_E_READS_COPY, [&] { pool->update_transaction([] {}); });
            refused(DURUM_E_READS_COPY, [&] { pool->begin_transaction(); });
            refused(DURUM_E_READS_COPY, [&] { pool->read_transaction([] {}); });
        }
        refused(DURUM_E_READS_COPY, [&] { other.read_transaction([] {}); });
        // What lies in no pool is not durum's.
        point *const local = new point{1, 2};
        local->x = 2;
        delete local;
        persist<int> number(3);
        number += 1;
        EXPECT_EQ(number, 4);
        expect_filled(all, 1);
    });
}

TEST(LeftRight, AReaderChangesNothing) {
    opened its;
    change_nothing(its); // in main
    its.pool.update_transaction([&] {
        fill(its.all, 2);
        elsewhere([&] { change_nothing(its); }); // in back
        fill(its.all, 1);
    });
    change_nothing(its);
    expect_filled(its.all, 1);
}

TEST(LeftRight, AReaderThatThrowsHoldsNobodyUp) {
    opened its;
    const auto throws = [&] {
        for (int times = 0; times < 3; times++) {
            EXPECT_THROW(its.pool.read_transaction([&] {
                // Inner ones end with it.
                durum::lr::read_transaction([&] {
                    expect_filled(its.all, 1);
                    throw std::runtime_error("as told");
                });
            }),
                         std::runtime_error);
            // What it read in is over.
            EXPECT_EQ(durum::detail::reading.pool, nullptr);
            EXPECT_EQ(durum::detail::reading.size, 0u);
        }
    };
    its.pool.update_transaction([&] {
        fill(its.all, 2);
        elsewhere(throws);
        fill(its.all, 1);
    });
    throws();
    // Its commit waits for readers, and there are none.
    its.pool.update_transaction([&] { fill(its.all, 2); });
    EXPECT_EQ(its.pool.read_transaction([&] {
        try {
            durum::lr::read_transaction([] { throw 5; });
        } catch (int) {
        }
        return its.all->number.get();
    }),
              2);
}

TEST(LeftRight, AReadInAReadSeesTheSame) {
    opened its;
    bool is_inside = false;
    std::thread reader;
    its.pool.update_transaction([&] {
        fill(its.all, 2);
        std::atomic<bool> has_come{false};
        reader = std::thread([&] {
            its.pool.read_transaction([&] {
                expect_filled(its.all, 1);
                has_come = true;
                // Until those who come now are sent to what this update has made.
                const auto newest = [&] {
                    return its.pool.read_transaction([&] { return its.all->number.get(); });
                };
                int seen = 1;
                while (seen == 1) {
                    elsewhere([&] { seen = newest(); });
                }
                EXPECT_EQ(newest(), 1);
                expect_filled(its.all, 1);
                is_inside = true;
            });
        });
        while (!has_come) {
            std::this_thread::yield();
        }
    });
    reader.join();
    EXPECT_TRUE(is_inside);
    expect_filled(its.all, 2);
}

TEST(LeftRight, WhatIsRolledBackIsNeverSeen) {
    opened its;
    EXPECT_THROW(its.pool.update_transaction([&] {
        fill(its.all, 2);
        elsewhere([&] { its.pool.read_transaction([&] { expect_filled(its.all, 1); }); });
        throw std::runtime_error("not kept");
    }),
                 std::runtime_error);
    its.pool.read_transaction([&] { expect_filled(its.all, 1); });
    elsewhere([&] { its.pool.read_transaction([&] { expect_filled(its.all, 1); }); });
}

TEST(LeftRight, ReadersNeedAPoolThatIsOpenForThem) {
    {
        place there;
        durum::pool pool(there.path(), "pool", engine_options());
        EXPECT_EQ(code_of_refusal([] { durum::lr::read_transaction([] {}); }), DURUM_E_NO_COPIES);
        pool.update_transaction([] {});
    }
    place there;
    {
        durum::lr::pool pool(there.path());
        pool.update_transaction([&] {
            auto *made = durum::lr::alloc<everything>();
            made->number = 5;
            durum::lr::put_object(3, made);
        });
    }
    // The same by its options, and the same pool.
    durum::options how;
    how.engine = DURUM_ENGINE_TWIN;
    how.flags = durum::left_right;
    durum::pool pool(there.path(), "pool", how);
    const int number = durum::lr::read_transaction(
        [] { return durum::lr::get_object<everything>(3)->number.get(); });
    EXPECT_EQ(number, 5);
    // Those who wait for updates read main.
    EXPECT_EQ(durum::read_transaction([&] { return pool.get_object<everything>(3)->number.get(); }),
              5);
    durum::options both;
    both.engine = DURUM_ENGINE_TWIN;
    both.flags = durum::left_right | durum::basic_copies;
    place other;
    EXPECT_EQ(code_of_refusal([&] { durum::pool refused(other.path(), "pool", both); }),
              DURUM_E_ARGUMENT);
    both.engine = DURUM_ENGINE_SHADOW;
    both.flags = durum::left_right;
    EXPECT_EQ(code_of_refusal([&] { durum::pool refused(other.path(), "pool", both); }),
              DURUM_E_ARGUMENT);
}

} // namespace test_lr
