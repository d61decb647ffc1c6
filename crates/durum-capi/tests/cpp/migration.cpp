// Pools whose types have changed, made anew by durum::migration.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/wait.h>
#include <unistd.h>

#include "place.hpp"

using durum::persist;

/// The types as the earlier version had them.
namespace before {

struct day {
    persist<std::uint32_t> number;
    friend bool operator<(const day &left, const day &right) { return left.number < right.number; }
};

struct task {
    persist<std::uint64_t> number;
    persist<task *> next;
    durum::string name;
    persist<std::uint16_t> tries;
    durum::vector<std::uint32_t> steps;
};

/// Several have room where one has.
struct small {
    persist<std::uint16_t> value{7};
};

struct calendar {
    durum::map<day, task> tasks;
    durum::map<durum::string, std::uint64_t> names;
    durum::map<std::uint32_t, bool> flags;
    durum::map<bool, std::uint32_t> sides;
    persist<task *> first;
    durum::vector<task> rest;
    persist<small *> four;
};

} // namespace before

namespace after {

struct day {
    persist<std::uint16_t> year;
    persist<std::uint16_t> day_of_year;
    /// Not as numbers of days are.
    friend bool operator<(const day &left, const day &right) {
        return left.day_of_year != right.day_of_year ? left.day_of_year < right.day_of_year
                                                     : left.year < right.year;
    }
};

struct task {
    durum::vector<std::uint32_t> steps;
    persist<bool> is_urgent;
    durum::string name;
    persist<task *> next;
    persist<std::uint64_t> number;
};

/// What compares keys otherwise.
struct backwards {
    using is_transparent = void;
    /// So many comparisons later the process ends.
    static inline int left_until_end = 0;
    static inline bool throws = false;
    bool operator()(std::string_view left, std::string_view right) const {
        if (--left_until_end == 0) {
            _exit(3);
        }
        if (throws) {
            throw std::runtime_error("there is no order today");
        }
        return right < left;
    }
};

struct small {
    persist<std::uint32_t> value;
};

struct calendar {
    persist<std::uint32_t> version;
    persist<small *> four;
    durum::map<std::uint32_t, bool, std::greater<>> flags;
    durum::map<bool, std::uint32_t> sides;
    durum::vector<task> rest;
    durum::map<durum::string, std::uint64_t, backwards> names;
    durum::map<day, task> tasks;
    persist<task *> first;
};

} // namespace after

DURUM_DESCRIBE_AS(before::day, "day", number)
DURUM_DESCRIBE_AS(before::task, "task", number, next, name, tries, steps)
DURUM_DESCRIBE_AS(before::small, "small", value)
DURUM_DESCRIBE_AS(before::calendar, "calendar", tasks, names, flags, sides, first, rest, four)
DURUM_DESCRIBE_AS(after::day, "day", year, day_of_year)
DURUM_DESCRIBE_AS(after::task, "task", steps, is_urgent, name, next, number)
DURUM_DESCRIBE_AS(after::small, "small", value)
DURUM_DESCRIBE_AS(after::calendar, "calendar", version, four, flags, sides, rest, names, tasks,
                  first)

namespace test {

constexpr std::uint32_t days = 700;

static std::string name_of(std::uint32_t number) {
    // Short ones have the room of one letter that is alone.
    return number < 50 ? "t" + std::to_string(number)
                       : "task " + std::to_string(number) + " of several";
}

static void fill(before::task &made, std::uint32_t number, before::task *next) {
    made.number = number;
    made.next = next;
    made.name = name_of(number);
    made.tries = static_cast<std::uint16_t>(number % 5);
    for (std::uint32_t step = 0; step < number % 4; step++) {
        made.steps.push_back(number + step);
    }
}

/// A pool of the earlier version.
static void make_old(const place &there, const std::string &pool_name = "pool") {
    durum::pool pool(there.path(), pool_name, engine_options());
    pool.update_transaction([&] {
        auto *all = pool.alloc<before::calendar>();
        pool.put_object(0, all);
        for (std::uint32_t count = 0; count < days; count++) {
            // In no order.
            const std::uint32_t number = count * 311 % days;
            before::day key;
            key.number = number;
            fill(all->tasks[key], number, nullptr);
            all->names[name_of(number)] = number;
        }
        for (std::uint32_t number = 1; number <= 3; number++) {
            auto *made = pool.alloc<before::task>();
            fill(*made, number, all->first);
            all->first = made;
            all->rest.emplace_back();
            fill(all->rest.back(), number, nullptr);
        }
        for (std::uint32_t number = 0; number < 9; number++) {
            all->flags[number] = number % 2 == 1;
        }
        all->sides[false] = 1;
        all->sides[true] = 2;
        all->four = pool.alloc_array<before::small>(4);
        all->four[3].value = 13;
        pool.put_object(1, all->first.get());
        pool.put_object(7, pool.alloc<persist<std::uint64_t>>(77u));
    });
}

/// It is what make_old made, to the last entry.
static void expect_old(const place &there, const std::string &pool_name = "pool") {
    durum::pool pool(there.path(), pool_name);
    auto *all = pool.get_object<before::calendar>(0);
    ASSERT_EQ(all->tasks.size(), days);
    for (std::uint32_t number = 0; number < days; number++) {
        before::day key;
        key.number = number;
        const auto found = all->tasks.find(key);
        ASSERT_NE(found, all->tasks.end()) << number;
        ASSERT_EQ(found->second.name, name_of(number));
    }
    EXPECT_EQ(pool.get_object<before::task>(1), all->first.get());
}

static void new_task(const before::task &old, after::task &made) {
    durum::carry(made.steps, old.steps);
    durum::carry(made.name, old.name);
    durum::carry(made.next, old.next);
    made.number = old.number;
    made.is_urgent = old.tries > 3;
}

static void new_day(const before::day &old, after::day &made) {
    made.year = static_cast<std::uint16_t>(2000 + old.number / 100);
    made.day_of_year = static_cast<std::uint16_t>(old.number % 100);
}

/// All that is to be said, but for functions.
static durum::migration &said_but_functions(durum::migration &how) {
    return how.rebuild<durum::map<after::day, after::task>>()
        .rebuild<durum::map<durum::string, std::uint64_t, after::backwards>>()
        .rebuild<durum::map<std::uint32_t, bool, std::greater<>>>()
        .rebuild<durum::map<bool, std::uint32_t>>()
        .default_of("calendar", "version", std::uint32_t{2})
        .untyped_hold_no_pointers()
        .type<after::calendar>();
}

/// All that is to be said.
static durum::migration &said(durum::migration &how) {
    return said_but_functions(how)
        .object<before::task, after::task>(new_task)
        .object<before::day, after::day>(new_day);
}

static void expect_task(const after::task &found, std::uint32_t number) {
    EXPECT_EQ(found.number, number);
    EXPECT_EQ(found.name, name_of(number));
    EXPECT_EQ(found.is_urgent, number % 5 > 3);
    ASSERT_EQ(found.steps.size(), number % 4);
    for (std::uint32_t step = 0; step < number % 4; step++) {
        EXPECT_EQ(found.steps[step], number + step);
    }
}

static after::day day_of(std::uint32_t number) {
    after::day made;
    made.year = static_cast<std::uint16_t>(2000 + number / 100);
    made.day_of_year = static_cast<std::uint16_t>(number % 100);
    return made;
}

/// It is what the new version says, and goes on being changed.
static void expect_new(const place &there, const std::string &pool_name = "pool") {
    durum::pool pool(there.path(), pool_name, engine_options(DURUM_POOL_CHECK_STORES));
    auto *all = pool.get_object<after::calendar>(0);
    EXPECT_EQ(all->version, 2u);
    ASSERT_EQ(all->tasks.size(), days);
    ASSERT_EQ(all->names.size(), days);
    for (std::uint32_t number = 0; number < days; number++) {
        const auto found = all->tasks.find(day_of(number));
        ASSERT_NE(found, all->tasks.end()) << number;
        expect_task(found->second, number);
        ASSERT_EQ(all->names.at(name_of(number)), number);
    }
    std::uint32_t passed = 0;
    const after::day *last = nullptr;
    for (const auto &entry : all->tasks) {
        EXPECT_TRUE(last == nullptr || *last < entry.first);
        last = &entry.first;
        passed++;
    }
    EXPECT_EQ(passed, days);
    for (auto at = all->names.rbegin(); at != all->names.rend(); ++at) {
        passed--;
    }
    EXPECT_EQ(passed, 0u);
    std::uint32_t number = 3;
    for (const after::task *it = all->first; it != nullptr; it = it->next) {
        expect_task(*it, number);
        expect_task(all->rest[number - 1], number);
        number--;
    }
    EXPECT_EQ(number, 0u);
    for (std::uint32_t at = 0; at < 4; at++) {
        EXPECT_EQ(all->four[at].value, at == 3 ? 13u : 7u);
    }
    for (const auto &flag : all->flags) {
        EXPECT_EQ(flag.second, flag.first % 2 == 1);
    }
    EXPECT_EQ(all->flags.begin()->first, 8u);
    EXPECT_EQ(all->sides.at(true), 2u);
    EXPECT_EQ(all->flags.count(5), 1u);
    EXPECT_EQ(pool.get_object<after::task>(1), all->first.get());
    EXPECT_EQ(*pool.get_object<persist<std::uint64_t>>(7), 77u);
    pool.update_transaction([&] {
        for (std::uint32_t gone = 0; gone < days; gone += 2) {
            EXPECT_EQ(all->tasks.erase(day_of(gone)), 1u);
            EXPECT_EQ(all->names.erase(name_of(gone)), 1u);
        }
        all->tasks[day_of(days)].number = days;
        all->names["another"] = 1;
    });
    pool.update_transaction([&] {
        for (std::uint32_t gone = 1; gone < days; gone += 2) {
            EXPECT_EQ(all->tasks.erase(day_of(gone)), 1u);
            EXPECT_EQ(all->names.erase(name_of(gone)), 1u);
        }
    });
    EXPECT_EQ(all->tasks.begin()->second.number, days);
    EXPECT_EQ(all->names.begin()->first, "another");
}

/// Refuses the migration with these words, whether it is a plan or not, and leaves the pool as it
/// is.
static void expect_refused(const place &there, durum::migration &how, const std::string &words) {
    for (const bool is_plan : {true, false}) {
        try {
            is_plan ? how.plan(there.directory()) : how.run(there.directory());
            ADD_FAILURE() << "not refused: " << words;
        } catch (const durum::error &failure) {
            EXPECT_EQ(failure.code(), DURUM_E_MIGRATION);
            EXPECT_NE(std::string(failure.what()).find(words), std::string::npos) << failure.what();
        }
    }
    expect_old(there);
}

TEST(Migration, OfTheStoreOfAServiceSaysWhatToDo) {
    if (!place::is_served()) {
        return;
    }
    place there;
    make_old(there);
    durum::migration how;
    try {
        said(how).run(there.path());
        ADD_FAILURE() << "a service migrates";
    } catch (const durum::error &failure) {
        EXPECT_NE(std::string(failure.what()).find("name the directory of its store"),
                  std::string::npos)
            << failure.what();
    }
    expect_old(there);
}

class MigrationOfFiles : public testing::Test {
  protected:
    void SetUp() override {
        if (place::is_served()) {
            GTEST_SKIP() << "a service's store is migrated by its directory";
        }
        there = std::make_unique<place>();
        make_old(*there);
    }
    std::unique_ptr<place> there;
};

TEST_F(MigrationOfFiles, MakesAPoolAnew) {
    durum::migration how;
    const durum_migration_report plan = said(how).plan(there->directory());
    expect_old(*there);
    EXPECT_EQ(plan.rebuilt_maps, 4u);
    const durum_migration_report done = how.run(there->directory());
    EXPECT_EQ(done.objects, plan.objects);
    EXPECT_EQ(done.rebuilt_maps, 4u);
    EXPECT_GT(done.objects, 4 * days);
    expect_new(*there);
}

TEST_F(MigrationOfFiles, RefusesMapsOfWhichNobodySaysThatTheyAreBuilt) {
    durum::migration how;
    how.object<before::task, after::task>(new_task)
        .object<before::day, after::day>(new_day)
        .rebuild<durum::map<durum::string, std::uint64_t, after::backwards>>()
        .rebuild<durum::map<std::uint32_t, bool, std::greater<>>>()
        .default_of("calendar", "version", std::uint32_t{2})
        .untyped_hold_no_pointers()
        .type<after::calendar>();
    expect_refused(*there, how,
                   "the keys of a map change: it finds them no more; only the program builds it "
                   "anew, by its `operator<`");
}

TEST_F(MigrationOfFiles, RefusesKeysThatHaveBecomeTheSame) {
    durum::migration how;
    how.object<before::day, after::day>([](const before::day &old, after::day &made) {
        made.day_of_year = static_cast<std::uint16_t>(old.number / 2);
    });
    how.object<before::task, after::task>(new_task)
        .rebuild<durum::map<after::day, after::task>>()
        .rebuild<durum::map<durum::string, std::uint64_t, after::backwards>>()
        .rebuild<durum::map<std::uint32_t, bool, std::greater<>>>()
        .default_of("calendar", "version", std::uint32_t{2})
        .untyped_hold_no_pointers()
        .type<after::calendar>();
    expect_refused(*there, how, "calendar.tasks: two of its keys have become the same one");
}

TEST_F(MigrationOfFiles, RefusesWhatThrows) {
    durum::migration how;
    said_but_functions(how).object<before::task, after::task>(new_task);
    how.object<before::day, after::day>([](const before::day &old, after::day &made) {
        if (old.number == 600) {
            throw std::runtime_error("day 600 is no day");
        }
        new_day(old, made);
    });
    expect_refused(*there, how, "thrown: day 600 is no day");
    durum::migration odd;
    said_but_functions(odd).object<before::task, after::task>(new_task);
    odd.object<before::day, after::day>([](const before::day &, after::day &) { throw 600; });
    expect_refused(*there, odd, "thrown: something that is no std::exception");
    durum::migration unordered;
    said(unordered);
    after::backwards::throws = true;
    expect_refused(*there, unordered, "calendar.names: the comparison of its keys gave -1");
    expect_refused(*there, unordered, "thrown: there is no order today");
    after::backwards::throws = false;
}

TEST_F(MigrationOfFiles, RefusesWhatAFunctionForgetsOrDoubles) {
    durum::migration how;
    said_but_functions(how).object<before::day, after::day>(new_day);
    how.object<before::task, after::task>([](const before::task &old, after::task &made) {
        new_task(old, made);
        *made.next.unannounced() = nullptr;
    });
    expect_refused(*there, how, "forgets a pointer");
    durum::migration twice;
    said_but_functions(twice).object<before::day, after::day>(new_day);
    twice.object<before::task, after::task>([](const before::task &old, after::task &made) {
        new_task(old, made);
        *made.next.unannounced() =
            reinterpret_cast<after::task *>(const_cast<char *>(old.name.data()));
    });
    expect_refused(*there, twice, "task: its function");
}

/// The last one does not win without a word.
TEST_F(MigrationOfFiles, RefusesTwoFunctionsForOneType) {
    durum::migration how;
    said(how).object<before::day, after::day>(new_day);
    try {
        how.plan(there->directory());
        ADD_FAILURE() << "not refused";
    } catch (const durum::error &failure) {
        EXPECT_EQ(failure.code(), DURUM_E_ARGUMENT);
        EXPECT_NE(std::string(failure.what()).find("said twice what becomes of day"),
                  std::string::npos)
            << failure.what();
    }
    expect_old(*there);
}

/// So many nodes are there, from this one on.
static std::uint64_t below(std::uint64_t node, std::size_t left, std::size_t right) {
    if (node == 0) {
        return 0;
    }
    const auto *words = reinterpret_cast<const std::uint64_t *>(node);
    return 1 + below(words[left], left, right) + below(words[right], left, right);
}

/// Whatever a map says of its nodes, nobody reads where there is nothing, or goes round in it for
/// ever. What keys lead to is the affair of what compares them.
TEST_F(MigrationOfFiles, RefusesMapsThatAreDamaged) {
    // Words of a map: its first node, and how many there are; in a node, where its left one is, and
    // its right one.
    constexpr std::size_t root = 0, size = 1, left = 4, right = 5;
    using damage = void (*)(std::uint64_t * map, std::uint64_t * node, durum::pool & pool);
    const damage all[] = {
        [](std::uint64_t *map, std::uint64_t *, durum::pool &) { map[size] += 1; },
        [](std::uint64_t *map, std::uint64_t *, durum::pool &) { map[size] -= 1; },
        [](std::uint64_t *map, std::uint64_t *, durum::pool &) { map[size] = 0; },
        [](std::uint64_t *map, std::uint64_t *, durum::pool &) { map[size] = UINT64_MAX / 8; },
        [](std::uint64_t *map, std::uint64_t *node, durum::pool &) { node[left] = map[root]; },
        // A part is there twice.
        [](std::uint64_t *map, std::uint64_t *node, durum::pool &) {
            map[size] = 1 + 2 * below(node[right], left, right);
            node[left] = node[right];
        },
        // Another object, which is smaller than a node, and is all that there is.
        [](std::uint64_t *map, std::uint64_t *, durum::pool &pool) {
            map[size] = 1;
            map[root] = reinterpret_cast<std::uint64_t>(pool.get_object<persist<std::uint64_t>>(7));
        },
    };
    for (const damage &each : all) {
        std::uint64_t was[3] = {};
        const auto change = [&](auto body) {
            durum::pool pool(there->path());
            auto *map =
                reinterpret_cast<std::uint64_t *>(&pool.get_object<before::calendar>(0)->names);
            auto *node = reinterpret_cast<std::uint64_t *>(was[root] != 0 ? was[root] : map[root]);
            pool.update_transaction([&] {
                durum::detail::announce(map, 2 * sizeof(std::uint64_t));
                durum::detail::announce(&node[left], sizeof(std::uint64_t));
                body(map, node, pool);
            });
        };
        change([&](std::uint64_t *map, std::uint64_t *node, durum::pool &pool) {
            was[root] = map[root];
            was[size] = map[size];
            was[2] = node[left];
            each(map, node, pool);
        });
        durum::migration how;
        expect_refused(*there, said(how), "calendar.names: it is damaged");
        change([&](std::uint64_t *map, std::uint64_t *node, durum::pool &) {
            map[root] = was[root];
            map[size] = was[size];
            node[left] = was[2];
        });
    }
    durum::migration how;
    said(how).run(there->directory());
    expect_new(*there);
}

/// Nobody's code is asked about what is no value of its type. What is no key is not compared.
TEST_F(MigrationOfFiles, RefusesKeysThatAreNone) {
    const auto damage = [&](auto of) {
        durum::pool pool(there->path());
        const void *at = of(*pool.get_object<before::calendar>(0));
        pool.update_transaction([&] {
            durum::detail::announce(at, 1);
            *static_cast<unsigned char *>(const_cast<void *>(at)) = 2;
        });
    };
    damage([](before::calendar &all) { return all.flags.at(5).unannounced(); });
    durum::migration values;
    EXPECT_EQ(said(values).plan(there->directory()).rebuilt_maps, 4u);
    damage([](before::calendar &all) { return &all.sides.find(true)->first; });
    durum::migration how;
    expect_refused(*there, said(how), "calendar.sides: it is damaged: what lies in the place");
}

/// The process ends in the middle of the last step before the pool is the new one.
TEST_F(MigrationOfFiles, ThatIsKilledLeavesTheOldPool) {
    for (const int calls : {1, 500, 9000}) {
        const pid_t child = fork();
        if (child == 0) {
            after::backwards::left_until_end = calls;
            durum::migration how;
            said(how).run(there->directory());
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
        expect_old(*there);
    }
    durum::migration how;
    said(how).run(there->directory());
    expect_new(*there);
}

/// Pools of one store, which C opens together.
class both {
  public:
    explicit both(const place &there)
        : store_(durum_store_open(there.directory().c_str(), nullptr)),
          pools{durum_pool_open(store_, "pool", nullptr),
                durum_pool_open(store_, "other", nullptr)} {}
    both(const both &) = delete;
    both &operator=(const both &) = delete;
    ~both() {
        EXPECT_EQ(durum_pool_close(pools[0]), DURUM_OK);
        EXPECT_EQ(durum_pool_close(pools[1]), DURUM_OK);
        EXPECT_EQ(durum_store_close(store_), DURUM_OK);
    }

    template <class T> T *object(std::size_t pool) const {
        using table = durum::detail::objects;
        auto *found =
            static_cast<table *>(durum_root(pools[pool], durum::type_of<table>(), sizeof(table)));
        return static_cast<T *>(found->objects[0].get());
    }

  private:
    durum_store *store_;

  public:
    durum_pool *pools[2];
};

TEST_F(MigrationOfFiles, TakesPoolsTogether) {
    make_old(*there, "other");
    {
        const both opened(*there);
        before::calendar *const all[] = {opened.object<before::calendar>(0),
                                         opened.object<before::calendar>(1)};
        for (std::size_t at = 0; at < 2; at++) {
            ASSERT_EQ(durum_tx_begin(opened.pools[at]), DURUM_OK);
            all[at]->first->next->next->next = all[1 - at]->first;
            ASSERT_EQ(durum_tx_commit(), DURUM_OK);
        }
    }
    durum::migration alone;
    EXPECT_THROW(said(alone).run(there->directory()), durum::error);
    durum::migration how("pool");
    said(how.with("other")).run(there->directory());
    const both opened(*there);
    for (std::size_t at = 0; at < 2; at++) {
        const auto *all = opened.object<after::calendar>(at);
        EXPECT_EQ(all->tasks.at(day_of(699)).number, 699u);
        EXPECT_EQ(all->first->next->next->next.get(),
                  opened.object<after::calendar>(1 - at)->first.get());
    }
}

} // namespace test
