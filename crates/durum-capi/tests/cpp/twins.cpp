// durum::string, vector and map against those of the standard library, with updates that fail, and
// in the next run. Pools are checked for stores that nobody announced.

#include <durum.hpp>

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#include "place.hpp"

namespace test {

struct point {
    int x;
    int y;
    friend bool operator==(const point &left, const point &right) {
        return left.x == right.x && left.y == right.y;
    }
};

struct everything_else {
    durum::string name;
    durum::vector<int> numbers;
    durum::vector<durum::string> words;
    durum::vector<point> points;
    durum::vector<durum::vector<double>> rows;
    durum::map<int, std::uint64_t> squares;
    durum::map<durum::string, durum::string> dictionary;
    durum::map<durum::string, durum::vector<int>> index;
};

} // namespace test

DURUM_DESCRIBE(test::point, x, y)
DURUM_DESCRIBE(test::everything_else, name, numbers, words, points, rows, squares, dictionary,
               index)

namespace test {

struct failure {};

class Twins : public ::testing::Test {
  protected:
    template <class F> void update(F &&body) { pool_->update_transaction(body); }
    /// What `body` does, taken back.
    template <class F> void in_vain(F &&body) {
        EXPECT_THROW(pool_->update_transaction([&] {
            body();
            throw failure();
        }),
                     failure);
    }
    void reopen() {
        pool_.reset();
        pool_.emplace(place_.path(), "pool", engine_options(DURUM_POOL_CHECK_STORES));
        all_ = pool_->get_object<everything_else>(0);
    }
    void SetUp() override {
        reopen();
        update([&] {
            all_ = pool_->alloc<everything_else>();
            pool_->put_object(0, all_);
        });
    }
    void TearDown() override {
        update([&] { pool_->free(all_); });
    }

    place place_;
    std::optional<durum::pool> pool_;
    everything_else *all_ = nullptr;
};

TEST_F(Twins, AStringReadsAsOneOfStd) {
    auto &name = all_->name;
    EXPECT_STREQ(name.c_str(), "");
    update([&] { name = "a rather long name, which fits in no pointer"; });
    const std::string model = "a rather long name, which fits in no pointer";
    EXPECT_EQ(name, model);
    EXPECT_EQ(model, name.str());
    EXPECT_EQ(name.size(), model.size());
    EXPECT_EQ(name.find("long"), model.find("long"));
    EXPECT_EQ(name.rfind('n'), model.rfind('n'));
    EXPECT_EQ(name.find_first_of("xyz,"), model.find_first_of("xyz,"));
    EXPECT_EQ(name.find_last_not_of("retniop"), model.find_last_not_of("retniop"));
    EXPECT_EQ(name.substr(2, 6), "rather");
    EXPECT_EQ(name.find("nothing"), durum::string::npos);
    EXPECT_TRUE(name < "b" && "a" < name && name != "a" && name >= std::string("a"));
    EXPECT_EQ(name + "!", model + "!");
    EXPECT_EQ(std::string(name.begin(), name.end()), model);
    EXPECT_EQ(name.front(), 'a');
    EXPECT_EQ(name.back(), 'r');
    EXPECT_THROW(name.at(100), std::out_of_range);
    std::ostringstream out;
    out << name;
    EXPECT_EQ(out.str(), model);
    EXPECT_EQ(std::hash<durum::string>()(name), std::hash<std::string_view>()(model));
    const std::string_view view = name;
    EXPECT_EQ(view, model);
}

TEST_F(Twins, AStringChangesAsOneOfStd) {
    std::string model;
    std::mt19937 random(3);
    const auto change = [&](auto &text, unsigned what, std::size_t at, std::size_t count,
                            const std::string &more) {
        switch (what) {
        case 0:
            text.append(more);
            break;
        case 1:
            text.insert(at, more);
            break;
        case 2:
            text.erase(at, count);
            break;
        case 3:
            text.replace(at, count, more);
            break;
        case 4:
            text += static_cast<char>('a' + at % 26);
            break;
        case 5:
            text.resize(at + count, 'r');
            break;
        case 6:
            text.reserve(2 * count);
            text.push_back('p');
            break;
        case 7:
            text.shrink_to_fit();
            text = more;
            break;
        default:
            text.assign(count, 'n');
            text.pop_back();
        }
    };
    for (int step = 0; step < 200; step++) {
        const unsigned what = random() % 9;
        const std::size_t at = model.empty() ? 0 : random() % model.size();
        const std::size_t count = 1 + random() % 20;
        const std::string more(random() % 30, static_cast<char>('A' + random() % 26));
        in_vain([&] { change(all_->name, what, at, count, more); });
        ASSERT_EQ(all_->name, model) << step;
        update([&] { change(all_->name, what, at, count, more); });
        change(model, what, at, count, more);
        ASSERT_EQ(all_->name, model) << step << ": " << what;
        ASSERT_EQ(std::strlen(all_->name.c_str()), model.size());
    }
    update([&] {
        all_->name = "abc";
        all_->name[1] = 'x';
        all_->name.at(2) = all_->name[0];
    });
    EXPECT_EQ(all_->name, "axa");
    // Of parts of itself.
    update([&] {
        auto &name = all_->name;
        name.append(name);
        name.insert(1, name);
        name.replace(0, 2, name.view().substr(1));
        const auto &same = name;
        name = same;
    });
    EXPECT_EQ(all_->name, "axaaxaxaaxaxaaxaxaaxa");
    EXPECT_THROW(update([&] { all_->name.insert(100, "x"); }), std::out_of_range);
}

TEST_F(Twins, AVectorOfNumbersChangesAsOneOfStd) {
    std::vector<int> model;
    std::mt19937 random(5);
    const auto change = [&](auto &row, unsigned what, std::size_t at, int value) {
        switch (what) {
        case 0:
        case 1:
            row.push_back(value);
            break;
        case 2:
            row.insert(row.begin() + at, value);
            break;
        case 3:
            row.insert(row.begin() + at, {value, value + 1, value + 2});
            break;
        case 4:
            if (!row.empty()) {
                row.erase(row.begin() + at);
            }
            break;
        case 5:
            row.erase(row.begin() + at, row.end());
            break;
        case 6:
            row.resize(at + 7, value);
            break;
        case 7:
            if (!row.empty()) {
                row[at] += 5;
                row.front() = row.back();
                row.pop_back();
            }
            break;
        case 8:
            row.reserve(at + 40);
            row.emplace_back(value);
            break;
        default:
            row.shrink_to_fit();
            for (auto &each : row) {
                each *= 3;
            }
        }
    };
    for (int step = 0; step < 200; step++) {
        const unsigned what = random() % 10;
        const std::size_t at = model.empty() ? 0 : random() % model.size();
        const int value = static_cast<int>(random() % 1000);
        in_vain([&] { change(all_->numbers, what, at, value); });
        update([&] { change(all_->numbers, what, at, value); });
        change(model, what, at, value);
        const std::vector<int> found(all_->numbers.begin(), all_->numbers.end());
        ASSERT_EQ(found, model) << step << ": " << what;
    }
    update([&] {
        all_->numbers = {3, 1, 2};
        all_->numbers.push_back(all_->numbers[0]);
        all_->numbers.push_back(all_->numbers[1]);
        std::sort(all_->numbers.begin(), all_->numbers.end());
    });
    const std::vector<int> sorted(all_->numbers.rbegin(), all_->numbers.rend());
    EXPECT_EQ(sorted, (std::vector<int>{3, 3, 2, 1, 1}));
    EXPECT_THROW(all_->numbers.at(5), std::out_of_range);
}

TEST_F(Twins, VectorsHoldObjectsOfEachKind) {
    update([&] {
        all_->words = {"one", "two"};
        all_->words.insert(all_->words.begin() + 1, "between");
        for (int more = 0; more < 20; more++) {
            all_->words.push_back(all_->words[more]);
        }
        all_->words[0] += ", changed";
        all_->words.erase(all_->words.begin() + 3, all_->words.end() - 1);
        all_->points.push_back({1, 2});
        all_->points.emplace_back(point{3, 4});
        all_->points[0] = point{5, 6};
        all_->rows.resize(3);
        all_->rows[1] = {0.5, 1.5};
        all_->rows.push_back(all_->rows[1]);
        all_->rows[3][0] = 2.5;
        all_->rows.erase(all_->rows.begin());
    });
    reopen();
    EXPECT_EQ(all_->words.size(), 4u);
    EXPECT_EQ(all_->words[0], "one, changed");
    EXPECT_EQ(all_->words[1], "between");
    EXPECT_EQ(all_->words[3], "between");
    EXPECT_EQ(all_->points[0], (point{5, 6}));
    EXPECT_EQ(all_->points[1]->y, 4);
    EXPECT_EQ(all_->rows[0].size(), 2u);
    EXPECT_TRUE(all_->rows[1].empty());
    EXPECT_EQ(all_->rows[0].back(), 1.5);
    EXPECT_EQ(all_->rows[2].front(), 2.5);
    in_vain([&] {
        durum::vector<durum::string> other = all_->words;
        EXPECT_TRUE(other == all_->words);
        other.push_back("more");
        swap(other, all_->words);
        EXPECT_TRUE(other < all_->words);
        all_->words = std::move(other);
        all_->words.clear();
    });
    EXPECT_EQ(all_->words.size(), 4u);
}

TEST_F(Twins, AMapChangesAsOneOfStd) {
    std::map<int, std::uint64_t> model;
    std::mt19937 random(7);
    const auto change = [&](auto &squares, unsigned what, int key, std::uint64_t value) {
        switch (what) {
        case 0:
        case 1:
            squares[key] = value;
            break;
        case 2:
            squares.try_emplace(key, value);
            break;
        case 3:
            squares.insert_or_assign(key, value);
            break;
        case 4:
            squares.erase(key);
            break;
        case 5: {
            const auto at = squares.lower_bound(key);
            if (at != squares.end()) {
                squares.erase(at);
            }
            break;
        }
        case 6:
            for (auto &[at, square] : squares) {
                square += static_cast<std::uint64_t>(at);
            }
            break;
        default:
            squares.erase(squares.lower_bound(key), squares.upper_bound(key + 3));
        }
    };
    for (int step = 0; step < 300; step++) {
        const unsigned what = random() % 8;
        const int key = static_cast<int>(random() % 60);
        const std::uint64_t value = random();
        in_vain([&] { change(all_->squares, what, key, value); });
        update([&] { change(all_->squares, what, key, value); });
        change(model, what, key, value);
        ASSERT_EQ(all_->squares.size(), model.size()) << step;
        auto expected = model.begin();
        for (const auto &entry : all_->squares) {
            ASSERT_EQ(entry.first, expected->first) << step;
            ASSERT_EQ(entry.second.get(), (expected++)->second) << step;
        }
        auto backwards = model.rbegin();
        for (auto at = all_->squares.rbegin(); at != all_->squares.rend(); ++at, ++backwards) {
            ASSERT_EQ(at->first, backwards->first) << step;
        }
        const auto above = model.upper_bound(key);
        const auto found = all_->squares.upper_bound(key);
        ASSERT_EQ(found == all_->squares.end(), above == model.end());
        ASSERT_EQ(all_->squares.count(key), model.count(key));
    }
    EXPECT_THROW(all_->squares.at(1000), std::out_of_range);
}

TEST_F(Twins, AMapOfAThousandKeysInOrderIsNotDeep) {
    update([&] {
        for (int key = 0; key < 5000; key++) {
            all_->squares[key] = static_cast<std::uint64_t>(key) * key;
        }
    });
    EXPECT_EQ(all_->squares.size(), 5000u);
    EXPECT_EQ(all_->squares.at(70), 4900u);
    // It would take as many steps as there are keys, and the stack for as many calls.
    update([&] { all_->squares.clear(); });
    EXPECT_TRUE(all_->squares.empty());
}

TEST_F(Twins, MapsOfStringsAreLookedUpByAnyString) {
    update([&] {
        all_->dictionary = {};
        all_->dictionary["one"] = "eins";
        all_->dictionary[std::string("two")] = "zwei";
        all_->dictionary.insert(std::pair("three", "drei"));
        all_->dictionary.emplace("one", "again");
        all_->index["a"].push_back(1);
        all_->index["a"].push_back(2);
        all_->index["b"];
    });
    reopen();
    EXPECT_EQ(all_->dictionary.size(), 3u);
    EXPECT_EQ(all_->dictionary.at("one"), "eins");
    EXPECT_EQ(all_->dictionary.find(std::string_view("two"))->second, "zwei");
    EXPECT_FALSE(all_->dictionary.contains("four"));
    EXPECT_EQ(all_->dictionary.begin()->first, "one");
    EXPECT_EQ(all_->index.at("a").size(), 2u);
    update([&] {
        EXPECT_EQ(all_->dictionary.erase("two"), 1u);
        EXPECT_EQ(all_->dictionary.erase("two"), 0u);
        durum::map<durum::string, durum::string> other = all_->dictionary;
        EXPECT_TRUE(other == all_->dictionary);
        other["more"] = "mehr";
        EXPECT_TRUE(other != all_->dictionary);
        all_->dictionary = std::move(other);
    });
    EXPECT_EQ(all_->dictionary.at("more"), "mehr");
    EXPECT_EQ(all_->dictionary.size(), 3u);
}

TEST_F(Twins, RoomOfWhatWentIsThereAgain) {
    const auto live = [&] {
        std::size_t words = all_->name.size() + all_->numbers.size() + all_->words.size();
        return words + all_->squares.size() + all_->dictionary.size();
    };
    std::unordered_set<const void *> places;
    for (int round = 0; round < 200; round++) {
        update([&] {
            all_->name.assign(1000, 'x');
            all_->words.assign(10, "something that is allocated");
            all_->dictionary["key"] = "value";
        });
        places.insert(all_->name.c_str());
        update([&] {
            all_->name.clear();
            all_->name.shrink_to_fit();
            all_->words.clear();
            all_->words.shrink_to_fit();
            all_->dictionary.clear();
        });
        EXPECT_EQ(live(), 0u);
    }
    EXPECT_LT(places.size(), 50u);
}

} // namespace test
