// A diary in three versions, each of which makes anew what the one before has stored
// (docs/how-to/change-types.md): -DVERSION=1, 2 or 3. Each run adds an entry and shows all.

#include <durum.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

#ifndef VERSION
#define VERSION 3
#endif

using durum::persist;

#if VERSION < 3
struct day {
    persist<std::uint32_t> number; // from the first of January 2000 on
    friend bool operator<(const day &one, const day &other) { return one.number < other.number; }
};
DURUM_DESCRIBE(day, number)
#else
struct day {
    persist<std::uint16_t> year;
    persist<std::uint16_t> number; // in the year
    friend bool operator<(const day &one, const day &other) {
        return one.year != other.year ? one.year < other.year : one.number < other.number;
    }
};
DURUM_DESCRIBE(day, year, number)
#endif

#if VERSION == 1
struct entry {
    durum::string text;
    persist<std::uint16_t> minutes;
};
DURUM_DESCRIBE(entry, text, minutes)
#else
struct entry {
    durum::string place;
    durum::string text;
    persist<std::uint32_t> seconds;
};
DURUM_DESCRIBE(entry, place, text, seconds)
#endif

struct diary {
    durum::map<day, entry> entries;
#if VERSION == 3
    persist<std::uint8_t> mood;
#endif
};
#if VERSION < 3
DURUM_DESCRIBE(diary, entries)
#else
DURUM_DESCRIBE(diary, entries, mood)
#endif

#if VERSION == 2
namespace first {
struct entry {
    durum::string text;
    persist<std::uint16_t> minutes;
};
} // namespace first
DURUM_DESCRIBE_AS(first::entry, "entry", text, minutes)

static void migrate(const std::string &store) {
    durum::migration how;
    how.type<diary>().object<first::entry, entry>([](const first::entry &old, entry &made) {
        durum::carry(made.text, old.text);
        made.seconds = 60u * old.minutes;
    });
    how.run(store);
}
#elif VERSION == 3
namespace second {
struct day {
    persist<std::uint32_t> number;
};
} // namespace second
DURUM_DESCRIBE_AS(second::day, "day", number)

static void migrate(const std::string &store) {
    durum::migration how;
    how.object<second::day, day>([](const second::day &old, day &made) {
        made.year = static_cast<std::uint16_t>(2000 + old.number / 365);
        made.number = static_cast<std::uint16_t>(old.number % 365);
    });
    how.rebuild<durum::map<day, entry>>().default_of("diary", "mood", std::uint8_t{5});
    how.type<diary>().run(store);
}
#endif

static void add(durum::pool &pool, diary &all) {
    pool.update_transaction([&] {
        const auto count = static_cast<std::uint32_t>(all.entries.size());
        day now;
#if VERSION < 3
        now.number = 1000 - 300 * count;
#else
        now.year = 2001;
        now.number = static_cast<std::uint16_t>(count);
#endif
        entry &made = all.entries[now];
        made.text = "entry " + std::to_string(count);
#if VERSION == 1
        made.minutes = 30;
#else
        made.place = "here";
        made.seconds = 45;
#endif
    });
}

static void show(const diary &all) {
    for (const auto &[when, what] : all.entries) {
#if VERSION == 3
        std::printf("%u, day %u: ", unsigned{when.year}, unsigned{when.number});
#else
        std::printf("day %u: ", unsigned{when.number});
#endif
#if VERSION == 1
        std::printf("%s, %u min\n", what.text.c_str(), unsigned{what.minutes});
#else
        std::printf("%s, %u s, %s\n", what.text.c_str(), unsigned{what.seconds},
                    what.place.empty() ? "somewhere" : what.place.c_str());
#endif
    }
#if VERSION == 3
    std::printf("mood %u\n", unsigned{all.mood});
#endif
}

static void run(const std::string &store) {
    durum::pool pool(store);
    auto *all = pool.get_object<diary>(0);
    if (all == nullptr) {
        all = pool.update_transaction([&] {
            auto *made = pool.alloc<diary>();
            pool.put_object(0, made);
            return made;
        });
    }
    add(pool, *all);
    show(*all);
}

int main(int count, char **arguments) try {
    const std::string store = count > 1 ? arguments[1] : "diary.store";
#if VERSION > 1
    try {
        run(store);
    } catch (const durum::error &failure) {
        if (failure.code() != DURUM_E_ROOT_TYPE) {
            throw;
        }
        migrate(store);
        run(store);
    }
#else
    run(store);
#endif
    return 0;
} catch (const durum::error &failure) {
    std::fprintf(stderr, "diary: %s\n", failure.what());
    return 1;
}
