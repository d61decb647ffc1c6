// A queue of tasks in three versions, each of which goes on with what the one before has stored
// (docs/how-to/change-types.md): -DVERSION=1, 2 or 3. Each run adds a task and shows all.

#include <durum.hpp>

#include <cstdint>
#include <cstdio>

#ifndef VERSION
#define VERSION 3
#endif

using durum::persist;
using number_t = persist<std::uint64_t>;

#if VERSION == 1
struct task {
    number_t number;
    persist<task *> next;
    number_t tries{10};
    durum::reserved<16> later;
    task(std::uint64_t its_number, task *other) : number(its_number), next(other) {}
};
DURUM_DESCRIBE(task, number, next, tries, later)
#elif VERSION == 2
struct task {
    number_t number;
    persist<task *> next;
    number_t attempts{20};
    number_t deadline;
    durum::reserved<8> later;
    task(std::uint64_t its_number, task *other)
        : number(its_number), next(other), deadline(100 * its_number) {}
};
DURUM_DESCRIBE(task, number, next, attempts, deadline, later)
DURUM_HISTORY(task, DURUM_WAS(attempts, "tries"), DURUM_IN_RESERVED(deadline))
#else
struct job {
    number_t number;
    persist<job *> next;
    number_t attempts{20};
    number_t deadline;
    persist<job *> after;
    job(std::uint64_t its_number, job *other)
        : number(its_number), next(other), deadline(100 * its_number), after(other) {}
};
DURUM_DESCRIBE(job, number, next, attempts, deadline, after)
DURUM_HISTORY(job, DURUM_TYPE_WAS("task"), DURUM_WAS(attempts, "tries"),
              DURUM_IN_RESERVED(deadline), DURUM_IN_RESERVED(after))
using task = job;
#endif

struct queue {
    persist<task *> first;
    number_t count;
};
DURUM_DESCRIBE(queue, first, count)

static unsigned long long shown(const number_t &number) {
    return static_cast<std::uint64_t>(number);
}

static void show(const task &it) {
    std::printf("task %llu", shown(it.number));
#if VERSION == 1
    std::printf(", %llu tries", shown(it.tries));
#else
    std::printf(", %llu attempts", shown(it.attempts));
    if (it.deadline != 0) {
        std::printf(", until %llu", shown(it.deadline));
    }
#endif
#if VERSION == 3
    if (it.after != nullptr) {
        std::printf(", after %llu", shown(it.after->number));
    }
#endif
    std::printf("\n");
}

int main(int count, char **arguments) try {
    durum::pool pool(count > 1 ? arguments[1] : "tasks.store");
    queue *all = pool.update_transaction([&] {
        queue *found = pool.get_object<queue>(0);
        if (found == nullptr) {
            found = pool.alloc<queue>();
            pool.put_object(0, found);
        }
        return found;
    });
    pool.update_transaction([&] {
        all->count += 1;
        all->first = pool.alloc<task>(all->count, all->first);
    });
    for (const task *it = all->first; it != nullptr; it = it->next) {
        show(*it);
    }
    return 0;
} catch (const durum::error &failure) {
    std::fprintf(stderr, "tasks: %s\n", failure.what());
    return 1;
}
