// A queue of jobs that threads put in and take out; what docs/tutorials/cpp.md tells of. Each run
// does 400 jobs.

#include <durum.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

using durum::persist;

struct job {
    persist<std::uint64_t> number;
    persist<job *> next;
    explicit job(std::uint64_t wanted) : number(wanted), next(nullptr) {}
};
DURUM_DESCRIBE(job, number, next)

class queue {
  public:
    void put(std::uint64_t number) {
        durum::update_transaction([&] {
            job *made = durum::alloc<job>(number);
            if (last_ == nullptr) {
                first_ = made;
            } else {
                last_->next = made;
            }
            last_ = made;
            count_ += 1;
        });
    }

    std::optional<std::uint64_t> take() {
        return durum::update_transaction([&]() -> std::optional<std::uint64_t> {
            job *taken = first_;
            if (taken == nullptr) {
                return std::nullopt;
            }
            const std::uint64_t number = taken->number;
            first_ = taken->next;
            if (first_ == nullptr) {
                last_ = nullptr;
            }
            count_ -= 1;
            durum::free(taken);
            return number;
        });
    }

    std::uint64_t size() const {
        return durum::read_transaction([&] { return count_.get(); });
    }

  private:
    persist<job *> first_{nullptr};
    persist<job *> last_{nullptr};
    persist<std::uint64_t> count_{0};
    DURUM_MEMBERS(queue, first_, last_, count_)
};

queue *open_queue(durum::pool &pool) {
    return pool.update_transaction([&] {
        auto *found = pool.get_object<queue>(0);
        if (found == nullptr) {
            found = pool.alloc<queue>();
            pool.put_object(0, found);
        }
        return found;
    });
}

int main(int count, char **arguments) try {
    if (count != 2) {
        std::fprintf(stderr, "usage: queue STORE\n");
        return 2;
    }
    durum::pool pool(arguments[1]);
    queue *jobs = open_queue(pool);
    while (jobs->size() < 400) {
        jobs->put(jobs->size());
    }
    std::atomic<std::uint64_t> done{0}, sum{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; thread++) {
        threads.emplace_back([&] {
            while (auto number = jobs->take()) {
                done += 1;
                sum += *number;
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    std::printf("%zu threads, %llu jobs, sum %llu\n", threads.size(),
                static_cast<unsigned long long>(done), static_cast<unsigned long long>(sum));
    return 0;
} catch (const durum::error &failure) {
    std::fprintf(stderr, "%s (%d)\n", failure.what(), failure.code());
    return 1;
}
