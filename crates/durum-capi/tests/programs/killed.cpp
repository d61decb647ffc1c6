// durum::string, durum::vector and durum::map at work, to be killed and looked at again.
//
//   killed STORE ENGINE NAME run STEPS
//       goes on where it was, and says each step once it is durable
//   killed STORE ENGINE NAME check
//       compares what is there with what the same steps make of the containers of std; prints how
//       many they were
//
// ENGINE: default, hybrid, twin, twin-basic. NAME: the pool's.

#include <durum.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr std::size_t few = 60;

struct shelf {
    durum::persist<std::uint64_t> steps{0};
    durum::string text;
    durum::vector<std::uint64_t> numbers;
    durum::vector<durum::string> lines;
    durum::map<std::uint64_t, durum::string> names;
    DURUM_MEMBERS(shelf, steps, text, numbers, lines, names)
};

struct model {
    std::string text;
    std::vector<std::uint64_t> numbers;
    std::vector<std::string> lines;
    std::map<std::uint64_t, std::string> names;
};

std::uint64_t mixed(std::uint64_t step) {
    std::uint64_t all = (step + 1) * 0x9e3779b97f4a7c15;
    all = (all ^ all >> 30) * 0xbf58476d1ce4e5b9;
    return all ^ all >> 31;
}

/// What step number `step` does, to either of them: some changes in one update.
template <class Containers> void change(Containers &all, std::uint64_t step) {
    for (std::uint64_t part = 0; part < 3; part++) {
        const std::uint64_t random = mixed(3 * step + part);
        const std::uint64_t key = random >> 8 & 63;
        const std::string word(random >> 16 & 31, static_cast<char>('a' + random % 26));
        const std::size_t size = all.numbers.size();
        switch (random & 15) {
        case 0:
        case 1:
            all.numbers.push_back(random);
            break;
        case 2:
            all.numbers.insert(all.numbers.begin() + static_cast<long>(key % (size + 1)), random);
            break;
        case 3:
            if (size > 0) {
                all.numbers.erase(all.numbers.begin() + static_cast<long>(key % size));
            }
            break;
        case 4:
            if (size > 0) {
                all.numbers[key % size] = random;
            }
            break;
        case 5:
            if (size > few) {
                all.numbers.resize(size / 2);
            }
            break;
        case 6:
        case 7:
            all.lines.push_back(typename decltype(all.lines)::value_type(word.c_str()));
            break;
        case 8:
            if (!all.lines.empty()) {
                all.lines.pop_back();
            }
            break;
        case 9:
            if (!all.lines.empty()) {
                all.lines[key % all.lines.size()] += word;
            }
            break;
        case 10:
            if (all.lines.size() > few) {
                all.lines.clear();
            }
            break;
        case 11:
        case 12:
            all.names[key] = word.c_str();
            break;
        case 13:
            all.names.erase(key);
            break;
        case 14:
            all.text += word.c_str();
            break;
        default:
            if (all.text.size() > few) {
                all.text.erase(key % few, few / 2);
            }
            break;
        }
    }
}

shelf *find(durum::pool &pool) {
    return pool.update_transaction([&] {
        auto *found = pool.get_object<shelf>(0);
        if (found == nullptr) {
            found = pool.alloc<shelf>();
            pool.put_object(0, found);
        }
        return found;
    });
}

void run(durum::pool &pool, std::uint64_t steps) {
    auto *all = find(pool);
    for (std::uint64_t end = all->steps + steps; all->steps < end;) {
        pool.update_transaction([&] {
            change(*all, all->steps);
            all->steps += 1;
        });
        std::printf("%llu\n", static_cast<unsigned long long>(all->steps.get()));
        std::fflush(stdout);
    }
}

bool is_same(const shelf &all, const model &wanted) {
    bool same = all.text.view() == wanted.text && all.numbers.size() == wanted.numbers.size() &&
                all.lines.size() == wanted.lines.size() && all.names.size() == wanted.names.size();
    for (std::size_t at = 0; same && at < wanted.numbers.size(); at++) {
        same = all.numbers[at] == wanted.numbers[at];
    }
    for (std::size_t at = 0; same && at < wanted.lines.size(); at++) {
        same = all.lines[at].view() == wanted.lines[at];
    }
    auto next = wanted.names.begin();
    for (const auto &[key, name] : all.names) {
        same =
            same && next != wanted.names.end() && key == next->first && name.view() == next->second;
        if (!same) {
            break;
        }
        ++next;
    }
    return same;
}

int check(durum::pool &pool) {
    auto *all = find(pool);
    model wanted;
    for (std::uint64_t step = 0; step < all->steps; step++) {
        change(wanted, step);
    }
    if (!is_same(*all, wanted)) {
        std::fprintf(stderr, "after %llu steps the containers hold something else\n",
                     static_cast<unsigned long long>(all->steps.get()));
        return 1;
    }
    std::printf("%llu\n", static_cast<unsigned long long>(all->steps.get()));
    return 0;
}

} // namespace

int main(int count, char **arguments) try {
    if (count < 5) {
        std::fprintf(stderr, "usage: killed STORE ENGINE NAME run STEPS|check\n");
        return 2;
    }
    durum::options how;
    if (std::strcmp(arguments[2], "hybrid") == 0) {
        how.engine = DURUM_ENGINE_HYBRID;
    }
    if (std::strncmp(arguments[2], "twin", 4) == 0) {
        how.engine = DURUM_ENGINE_TWIN;
    }
    if (std::strcmp(arguments[2], "twin-basic") == 0) {
        how.flags = durum::basic_copies;
    }
    durum::pool pool(arguments[1], arguments[3], how);
    if (std::strcmp(arguments[4], "run") == 0 && count == 6) {
        run(pool, std::strtoull(arguments[5], nullptr, 10));
        return 0;
    }
    return check(pool);
} catch (const std::exception &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}
