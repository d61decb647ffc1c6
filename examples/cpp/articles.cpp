// Articles with ratings, and an index of words: containers in a pool.
//
//     articles STORE    rates each once more, and prints the index
#include <durum.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

struct article {
    durum::string title;
    durum::vector<int> ratings;
};
DURUM_DESCRIBE(article, title, ratings)

struct library {
    durum::vector<article> articles;
    durum::map<durum::string, durum::vector<std::uint64_t>> index;

    void add(const char *title) {
        const std::uint64_t number = articles.size();
        article &made = articles.emplace_back();
        made.title = title;
        const std::string_view words = made.title;
        for (std::size_t at = 0; at < words.size();) {
            const std::size_t end = std::min(words.find(' ', at), words.size());
            index[words.substr(at, end - at)].push_back(number);
            at = end + 1;
        }
    }
};
DURUM_DESCRIBE(library, articles, index)

int main(int argc, char **argv) {
    try {
        durum::pool pool(argc > 1 ? argv[1] : "articles.store");
        library *all = pool.update_transaction([&] {
            auto *found = pool.get_object<library>(0);
            if (found == nullptr) {
                found = pool.alloc<library>();
                pool.put_object(0, found);
                found->add("On pools");
                found->add("Of pools and puddles");
            }
            return found;
        });
        pool.update_transaction([&] {
            for (article &each : all->articles) {
                each.ratings.push_back(static_cast<int>(each.title.size()) % 5);
                each.ratings[0] += 1;
            }
        });
        pool.read_transaction([&] {
            for (const auto &[word, numbers] : all->index) {
                std::printf("%s: %zu\n", word.c_str(), numbers.size());
            }
            const article &last = all->articles.back();
            std::printf("%s was rated %zu times\n", last.title.c_str(), last.ratings.size());
        });
        return 0;
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
}
