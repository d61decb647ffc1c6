// Sections by the guards of C++, which may be left by exceptions, as far as the compiler knows.
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>

extern "C" {
#include "simulated.h"
}

struct root {
    std::mutex lock, other;
    uint64_t numbers[16];
    uint64_t taken, sum;
};

static_assert(sizeof(std::mutex) == sizeof(pthread_mutex_t));

namespace {

[[gnu::noinline]] void add(root &root, unsigned place, uint64_t value) {
    std::lock_guard<std::mutex> guard(root.lock);
    root.numbers[place] += value;
    root.sum += root.numbers[(place + 1) % 16];
}

[[gnu::noinline]] uint64_t step(root &root, uint64_t value) {
    root.numbers[value % 16] ^= value;
    root.numbers[(value + 1) % 16] += value;
    return root.numbers[value % 16];
}

// An exception behind the section.
[[gnu::noinline]] void walk(root &root, uint64_t value) {
    try {
        {
            std::lock_guard<std::mutex> guard(root.lock);
            root.taken++;
            for (uint64_t i = 0; i < 3; i++)
                root.sum += step(root, value + i);
        }
        if (value % 3 == 0)
            throw std::runtime_error("three");
    } catch (const std::runtime_error &) {
    }
}

[[gnu::noinline]] void early(root &root, uint64_t value) {
    std::unique_lock<std::mutex> guard(root.lock);
    root.numbers[value % 16]++;
    if (value % 2) {
        root.sum += step(root, value);
        guard.unlock();
    }
    if (guard.owns_lock())
        root.sum = 3 * root.sum + root.numbers[value % 16];
}

[[gnu::noinline]] void attempt(root &root, uint64_t value) {
    std::unique_lock<std::mutex> guard(root.other, std::try_to_lock);
    if (!guard)
        return;
    root.numbers[value % 16] += root.numbers[(value + 5) % 16];
    root.taken++;
}

[[gnu::noinline]] void both(root &root, uint64_t value) {
    std::scoped_lock guard(root.lock, root.other);
    std::swap(root.numbers[value % 16], root.numbers[(value + 3) % 16]);
    root.sum ^= value;
}

} // namespace

extern "C" {

const int operations = 40;

void init(root *root) {
    for (uint64_t i = 0; i < 16; i++)
        root->numbers[i] = i * i;
}

void operate(root *root, int number) {
    switch (number % 5) {
    case 0:
        return add(*root, number % 16, number);
    case 1:
        return walk(*root, number);
    case 2:
        return early(*root, number / 5);
    case 3:
        return attempt(*root, number);
    default:
        return both(*root, number);
    }
}

uint64_t digest(const root *root) {
    uint64_t sum = root->taken + 7 * root->sum;
    for (uint64_t number : root->numbers)
        sum = (sum ^ number) * 0x9e3779b97f4a7c15u + 1;
    return sum;
}
}
