// Virtual functions in sections: UBSan looks at the types of objects.
extern "C" {
#include "simulated.h"
}

namespace {

struct shape {
    virtual uint64_t area() const { return 1; }
    virtual ~shape() = default;
};
struct square final : shape {
    uint64_t side = 0;
    uint64_t area() const override { return side * side; }
};

[[gnu::noinline]] uint64_t area_of(const shape &shape) { return shape.area(); }

} // namespace

struct root {
    pthread_mutex_t lock;
    uint64_t sum, count;
};

extern "C" {

const int operations = 20;

void init(root *root) { root->sum = 1; }

void operate(root *root, int number) {
    square square;
    shape plain;
    square.side = number;
    pthread_mutex_lock(&root->lock);
    root->sum = 3 * root->sum + area_of(number % 3 ? static_cast<const shape &>(square) : plain);
    root->count++;
    pthread_mutex_unlock(&root->lock);
}

uint64_t digest(const root *root) { return root->sum + 7 * root->count; }
}
