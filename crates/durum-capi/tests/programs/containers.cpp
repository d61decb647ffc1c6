/* Containers of the standard library, with an allocator and without a line about durability, in a
 * pool.
 *
 *     containers STORE append COUNT    adds COUNT entries, each in a section, and prints the size
 *     containers STORE check           checks what is there, and prints the size
 *
 * Kill it whenever you like: the containers are whole, and as large as it last said or one entry
 * larger.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <durum.h>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

durum_pool *pool = NULL;

/* Memory of the pool. Pointers are plain ones: what they lead to lies at the same address in every
 * run. */
template <class T> struct allocator {
    typedef T value_type;
    allocator() {}
    template <class U> allocator(const allocator<U> &) {}
    T *allocate(size_t count) {
        void *memory = durum_malloc(pool, NULL, count * sizeof(T));
        if (memory == NULL) {
            throw std::bad_alloc();
        }
        return static_cast<T *>(memory);
    }
    void deallocate(T *memory, size_t) { durum_free(memory); }
};
template <class T, class U> bool operator==(const allocator<T> &, const allocator<U> &) {
    return true;
}
template <class T, class U> bool operator!=(const allocator<T> &, const allocator<U> &) {
    return false;
}

typedef std::basic_string<char, std::char_traits<char>, allocator<char>> text;
typedef std::map<uint64_t, text, std::less<uint64_t>, allocator<std::pair<const uint64_t, text>>>
    table;
typedef std::vector<uint64_t, allocator<uint64_t>> numbers;

/* What an application has. It knows nothing of durum. */
struct ledger {
    table entries;
    numbers order;
    uint64_t sum;

    ledger() : sum(0) {}

    void add(uint64_t number) {
        const uint64_t key = number * 2654435761u % 1000003;
        order.push_back(key);
        sum += key;
        entries[key] = text(number % 90, static_cast<char>('a' + number % 26));
        if (number % 7 == 6) {
            text &other = entries[order[number / 2]];
            other += "!";
        }
        if (number % 11 == 10) {
            entries.erase(order[number / 3]);
            entries[order[number / 3]] = "again";
        }
    }

    bool is_right() const {
        uint64_t found = 0;
        for (numbers::const_iterator key = order.begin(); key != order.end(); ++key) {
            if (entries.find(*key) == entries.end()) {
                return false;
            }
            found += *key;
        }
        uint64_t last = 0;
        for (table::const_iterator entry = entries.begin(); entry != entries.end(); ++entry) {
            if (entry != entries.begin() && entry->first <= last) {
                return false;
            }
            last = entry->first;
        }
        return found == sum && entries.size() == order.size();
    }
};

/* The root: the bytes of a ledger, and whether it was made. */
struct root {
    alignas(ledger) unsigned char bytes[sizeof(ledger)];
    uint64_t is_made;
};

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != DURUM_OK) {                                                                  \
            fprintf(stderr, "%s: %s\n", #call, durum_errormsg());                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s STORE append COUNT | check\n", argv[0]);
        return 2;
    }
    durum_store *store = durum_store_open(argv[1], NULL);
    if (store == NULL) {
        store = durum_store_create(argv[1], NULL);
    }
    durum_pool_options options = DURUM_POOL_OPTIONS_INIT;
    options.engine = DURUM_ENGINE_SHADOW;
    pool = durum_pool_open(store, "ledger", &options);
    if (pool == NULL) {
        pool = durum_pool_create(store, "ledger", &options);
    }
    root *const place = static_cast<root *>(durum_root(pool, NULL, sizeof(root)));
    if (place == NULL) {
        fprintf(stderr, "%s\n", durum_errormsg());
        return 1;
    }
    if (!place->is_made) {
        TRY(durum_section_begin(pool));
        new (place->bytes) ledger();
        place->is_made = 1;
        TRY(durum_tx_commit());
    }
    ledger *const book = reinterpret_cast<ledger *>(place->bytes);
    if (strcmp(argv[2], "append") == 0 && argc == 4) {
        for (unsigned long count = strtoul(argv[3], NULL, 10); count > 0; count--) {
            const uint64_t size = book->order.size();
            if (size % 5 == 3) {
                /* What throws halfway was never there. */
                TRY(durum_section_begin(pool));
                try {
                    book->add(size);
                    book->entries.begin()->second.at(1000000) = 'x';
                } catch (const std::out_of_range &) {
                }
                TRY(durum_tx_rollback());
            }
            TRY(durum_section_begin(pool));
            book->add(size);
            TRY(durum_tx_commit());
            printf("%zu\n", book->order.size());
            fflush(stdout);
        }
    } else if (!book->is_right()) {
        fprintf(stderr, "the containers contradict each other\n");
        return 1;
    } else {
        printf("%zu\n", book->order.size());
    }
    TRY(durum_pool_close(pool));
    TRY(durum_store_close(store));
    return 0;
}
