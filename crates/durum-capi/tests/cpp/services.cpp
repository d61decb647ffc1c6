// What a program catches that a service refuses, and puddles that are mapped when they are needed.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "place.hpp"

namespace {

struct large {
    durum::persist<char[3 << 20]> bytes;
};

struct linked {
    durum::persist<int> value;
    durum::persist<linked *> next;
};

} // namespace

DURUM_DESCRIBE_AS(large, "test_services.large", bytes)
DURUM_DESCRIBE_AS(linked, "test_services.linked", value, next)

namespace {

TEST(Services, APoolIsOnePrograms) {
    if (!place::is_served()) {
        GTEST_SKIP() << "a store is one program's";
    }
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    // Another client of the service, as another program would be.
    try {
        durum::pool second(there.path(), "pool", engine_options());
        ADD_FAILURE() << "it is open twice";
    } catch (const durum::pool_busy &busy) {
        EXPECT_EQ(busy.code(), DURUM_E_POOL_BUSY);
        EXPECT_NE(std::string(busy.what()).find("another program"), std::string::npos);
    }
    durum::pool other(there.path(), "other", engine_options());
    other.update_transaction([&] { other.put_object(0, other.alloc<durum::persist<int>>(5)); });
    EXPECT_EQ(*other.get_object<durum::persist<int>>(0), 5);
}

TEST(Services, ACopyIsOpenBesideItsOriginal) {
    place there;
    {
        durum::pool pool(there.path(), "pool", engine_options());
        pool.update_transaction([&] {
            auto *first = pool.alloc<linked>();
            first->next = pool.alloc<linked>();
            first->next->value = 5;
            pool.put_object(0, first);
        });
    }
    const bool is_served = place::is_served();
    if (is_served) {
        EXPECT_EQ(there.end_service(SIGTERM), 0);
    }
    const std::string copy = there.directory() + "-copy";
    std::filesystem::copy(there.directory(), copy, std::filesystem::copy_options::recursive);
    if (is_served) {
        there.start_service();
    }
    durum::pool pool(there.path(), "pool", engine_options());
    durum::pool copied(copy, "pool", engine_options());
    linked *mine = pool.get_object<linked>(0)->next;
    linked *theirs = copied.get_object<linked>(0)->next;
    EXPECT_NE(mine, theirs);
    EXPECT_EQ(mine->value, 5);
    copied.update_transaction([&] { theirs->value = 6; });
    EXPECT_EQ(mine->value, 5);
    EXPECT_EQ(theirs->value, 6);
}

TEST(Services, TransactionsGoOnWithoutTheService) {
    if (!place::is_served()) {
        GTEST_SKIP() << "there is none";
    }
    place there;
    durum::pool pool(there.path(), "pool", engine_options());
    pool.update_transaction([&] { pool.put_object(0, pool.alloc<durum::persist<int>>(5)); });
    EXPECT_NE(there.end_service(SIGKILL), 0);
    auto *number = pool.get_object<durum::persist<int>>(0);
    pool.update_transaction([&] { *number = 6; });
    EXPECT_EQ(*number, 6);
    EXPECT_THROW(durum::pool(there.path(), "other"), durum::service_gone);
    EXPECT_THROW(durum::pool(there.directory(), "other"), durum::store_served);
    // Whoever catches all of them gets these, too.
    EXPECT_THROW(durum::pool(there.path(), "other"), durum::error);
    // A pool that is closed tells it so.
    there.start_service();
}

/// Whether the system can store at an address.
bool system_stores(void *address) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    EXPECT_EQ(write(ends[1], "1234", 4), 4);
    const ssize_t count = read(ends[0], address, 4);
    EXPECT_TRUE(count == 4 || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return count == 4;
}

TEST(Mapping, APoolIsMappedAsItsOptionsSay) {
    place there;
    durum::options how = engine_options();
    large *object = nullptr;
    {
        durum::pool pool(there.path(), "pool", how);
        pool.update_transaction([&] {
            object = pool.alloc<large>();
            pool.put_object(0, object);
        });
    }
    for (how.mapping = DURUM_MAPPING_EAGER; how.mapping <= DURUM_MAPPING_SIGNAL; how.mapping++) {
        durum::pool pool(there.path(), "pool", how);
        if (how.mapping == DURUM_MAPPING_EAGER || how.mapping == DURUM_MAPPING_SIGNAL) {
            EXPECT_EQ(system_stores(object), how.mapping == DURUM_MAPPING_EAGER);
        }
        EXPECT_EQ(durum_touch(object, sizeof(*object)), DURUM_OK);
        EXPECT_TRUE(system_stores(object));
    }
}

} // namespace
