// Members: types that point at each other, and members that are not persist<T>.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <mutex>

#include "place.hpp"

namespace test {

struct child;

struct parent {
    durum::persist<child *> first;
    durum::persist<std::uint64_t> children;
};

struct child {
    durum::persist<parent *> above;
    durum::persist<child *> next;
};

/// The same with private members, the one that is mentioned first described last.
class branch;

class leaf {
  public:
    durum::persist<branch *> &above() { return above_; }

  private:
    durum::persist<branch *> above_;

    DURUM_MEMBERS(leaf, above_)
};

class branch {
  public:
    durum::persist<leaf *> &first() { return first_; }

  private:
    durum::persist<leaf *> first_;

    DURUM_MEMBERS(branch, first_)
};

struct guarded {
    const std::uint64_t number;
    durum::volatile_member<std::mutex> lock;
    durum::volatile_member<int> waiting[2];
    durum::persist<int> count;
    explicit guarded(std::uint64_t wanted) : number(wanted) {}
};

} // namespace test

DURUM_DESCRIBE(test::parent, first, children)
DURUM_DESCRIBE(test::child, above, next)
DURUM_DESCRIBE(test::guarded, number, lock, waiting, count)

namespace test {

TEST(Members, TypesThatPointAtEachOtherKnowEachOther) {
    EXPECT_EQ(durum::type_of<parent>()->fields[0].target, &durum::type_of<child>);
    EXPECT_EQ(durum::type_of<child>()->fields[0].target, &durum::type_of<parent>);
    EXPECT_EQ(durum::type_of<child>()->fields[1].target, &durum::type_of<child>);
    EXPECT_EQ(durum::type_of<leaf>()->fields[0].target, &durum::type_of<branch>);
    EXPECT_EQ(durum::type_of<branch>()->fields[0].target, &durum::type_of<leaf>);
    place there;
    durum::pool pool(there.path(), "pool", engine_options(DURUM_POOL_CHECK_STORES));
    auto *made = pool.update_transaction([&] {
        auto *family = pool.alloc<parent>();
        for (int number = 0; number < 3; number++) {
            auto *next = pool.alloc<child>();
            next->above = family;
            next->next = family->first;
            family->first = next;
            family->children += 1;
        }
        auto *tree = pool.alloc<branch>();
        tree->first() = pool.alloc<leaf>();
        tree->first()->above() = tree;
        pool.put_object(0, family);
        pool.put_object(1, tree);
        return family;
    });
    EXPECT_EQ(made->first->next->next->above.get(), made);
    EXPECT_EQ(pool.get_object<parent>(0), made);
    EXPECT_EQ(pool.get_object<branch>(1)->first()->above().get(), pool.get_object<branch>(1));
}

TEST(Members, VolatileOnesNeedNoAnnouncement) {
    EXPECT_EQ(durum::type_of<guarded>()->fields[1].kind, DURUM_KIND_VOLATILE);
    EXPECT_EQ(durum::type_of<guarded>()->fields[2].count, 2u);
    place there;
    durum::pool pool(there.path(), "pool", engine_options(DURUM_POOL_CHECK_STORES));
    auto *made = pool.update_transaction([&] { return pool.alloc<guarded>(5u); });
    EXPECT_EQ(made->number, 5u);
    pool.update_transaction([&] {
        const std::lock_guard<std::mutex> hold(made->lock.get());
        made->waiting[1] = 3;
        made->count = made->waiting[1];
    });
    EXPECT_EQ(made->count, 3);
    EXPECT_THROW(pool.update_transaction([&] {
        made->waiting[0] = 7;
        made->count = 4;
        throw 1;
    }),
                 int);
    EXPECT_EQ(made->count, 3);
    EXPECT_EQ(made->waiting[0], 7);
}

} // namespace test
