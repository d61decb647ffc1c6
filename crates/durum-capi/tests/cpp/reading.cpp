// Pools that are open for reading only.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "place.hpp"

namespace {

using number = durum::persist<std::uint64_t>;

durum::options reading() {
    durum::options how = engine_options();
    how.flags |= durum::read_only;
    return how;
}

/// The pool "pool" with 5 at number 0.
void make(const place &there) {
    durum::pool pool(there.path(), "pool", engine_options());
    pool.update_transaction([&] { pool.put_object(0, pool.alloc<number>(5)); });
}

template <class F> void expect_code(int code, F &&body) {
    try {
        body();
        ADD_FAILURE() << "it was done";
    } catch (const durum::error &error) {
        EXPECT_EQ(error.code(), code) << error.what();
    }
}

template <class F> void expect_refused(F &&body) {
    expect_code(DURUM_E_READ_ONLY, body);
}

TEST(Reading, APoolThatIsOnlyReadIsNotChanged) {
    place there;
    make(there);
    {
        durum::pool pool(there.path(), "pool", reading());
        auto *five = pool.get_object<number>(0);
        ASSERT_NE(five, nullptr);
        EXPECT_EQ(pool.read_transaction([&] { return five->get(); }), 5U);
        EXPECT_EQ(pool.get_object<number>(1), nullptr);
        bool has_run = false;
        expect_refused([&] { pool.update_transaction([&] { has_run = true; }); });
        expect_refused([&] { pool.begin_transaction(); });
        EXPECT_FALSE(has_run);
        EXPECT_EQ(durum_tx_level(), 0);
        // Outside of a transaction nothing is stored in any pool.
        expect_code(DURUM_E_NO_TRANSACTION, [&] { *five = 6; });
        expect_code(DURUM_E_NO_TRANSACTION, [&] { pool.put_object(1, five); });
        EXPECT_EQ(*five, 5U);
    }
    durum::pool pool(there.path(), "pool", engine_options());
    auto *five = pool.get_object<number>(0);
    pool.update_transaction([&] { *five = *five + 1; });
    EXPECT_EQ(*five, 6U);
}

TEST(Reading, CopiesAreReadToo) {
    place there;
    {
        durum::lr::pool pool(there.path());
        pool.update_transaction(
            [&] { pool.put_object(0, pool.alloc<durum::lr::persist<int>>(5)); });
    }
    durum::options how;
    how.flags = durum::read_only;
    durum::lr::pool pool(there.path(), "pool", how);
    auto *five = pool.get_object<durum::lr::persist<int>>(0);
    EXPECT_EQ(pool.read_transaction([&] { return five->get(); }), 5);
    expect_refused([&] { pool.update_transaction([&] { *five = 6; }); });
}

TEST(Reading, WhatIsNotThereIsNotMade) {
    place there;
    if (place::is_served()) {
        expect_code(DURUM_E_POOL_MISSING, [&] { durum::pool(there.path(), "pool", reading()); });
    } else {
        expect_code(DURUM_E_STORE_MISSING, [&] { durum::pool(there.path(), "pool", reading()); });
        EXPECT_FALSE(std::filesystem::exists(there.directory()));
    }
    make(there);
    expect_code(DURUM_E_POOL_MISSING, [&] { durum::pool(there.path(), "other", reading()); });
}

/// Reads the pool in a process of its own, as soon as `begin` has something.
pid_t reader(const std::string &path, const int (&begin)[2]) {
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(begin[1]);
        bool is_well = read(begin[0], &byte, 1) == 1;
        try {
            durum::pool pool(path, "pool", reading());
            is_well = is_well && *pool.get_object<number>(0) == 5U;
        } catch (const durum::error &error) {
            std::fprintf(stderr, "%s\n", error.what());
            is_well = false;
        }
        _exit(is_well ? 0 : 1);
    }
    return child;
}

TEST(Reading, ManyReadAPoolOrOneWritesIt) {
    if (!place::is_served()) {
        GTEST_SKIP() << "a store is one program's";
    }
    place there;
    make(there);
    int begin[2];
    ASSERT_EQ(pipe(begin), 0);
    const pid_t child = reader(there.path(), begin);
    {
        durum::pool pool(there.path(), "pool", reading());
        EXPECT_EQ(pool.get_object<number>(0)->get(), 5U);
        ASSERT_EQ(write(begin[1], "!", 1), 1);
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0) << "two programs read it";
        // Another client of the service, as another program would be.
        EXPECT_THROW(durum::pool(there.path(), "pool", engine_options()), durum::pool_busy);
    }
    durum::pool pool(there.path(), "pool", engine_options());
    EXPECT_THROW(durum::pool(there.path(), "pool", reading()), durum::pool_busy);
}

} // namespace
