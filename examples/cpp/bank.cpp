// Accounts between which threads move money while others add them up, without waiting; what
// docs/tutorials/cpp.md tells of. Each run does 4,000 moves.

#include <durum.hpp>

#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

// With durum instead of durum::lr readers would wait for updates.
namespace memory = durum::lr;

struct account {
    memory::persist<std::int64_t> balance;
    memory::persist<account *> next;
    account(std::int64_t first, account *other) : balance(first), next(other) {}
};
DURUM_DESCRIBE(account, balance, next)

class bank {
  public:
    explicit bank(int accounts) {
        for (int made = 0; made < accounts; made++) {
            first_ = memory::alloc<account>(100, first_);
        }
    }

    void move(int from, int to, std::int64_t amount) {
        memory::update_transaction([&] {
            find(from).balance -= amount;
            find(to).balance += amount;
        });
    }

    std::int64_t total() const {
        return memory::read_transaction([&] {
            std::int64_t sum = 0;
            for (const account *at = first_; at != nullptr; at = at->next) {
                sum += at->balance;
            }
            return sum;
        });
    }

  private:
    account &find(int number) {
        account *at = first_;
        while (number-- > 0) {
            at = at->next;
        }
        return *at;
    }

    memory::persist<account *> first_{nullptr};
    DURUM_MEMBERS(bank, first_)
};

int main(int count, char **arguments) try {
    if (count != 2) {
        std::fprintf(stderr, "usage: bank STORE\n");
        return 2;
    }
    memory::pool pool(arguments[1]);
    constexpr int accounts = 20;
    bank *all = pool.update_transaction([&] {
        auto *found = pool.get_object<bank>(0);
        if (found == nullptr) {
            found = pool.alloc<bank>(accounts);
            pool.put_object(0, found);
        }
        return found;
    });
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; thread++) {
        threads.emplace_back([&, thread] {
            for (int round = 0; round < 2000; round++) {
                all->move((round + thread) % accounts, round * 7 % accounts, round % 5);
            }
        });
    }
    int wrong = 0;
    for (int round = 0; round < 2000; round++) {
        wrong += all->total() != 100 * accounts;
    }
    for (auto &thread : threads) {
        thread.join();
    }
    std::printf("total %lld, seen otherwise %d times\n", static_cast<long long>(all->total()),
                wrong);
    return 0;
} catch (const durum::error &failure) {
    std::fprintf(stderr, "%s (%d)\n", failure.what(), failure.code());
    return 1;
}
