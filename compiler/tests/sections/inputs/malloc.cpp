// A list of objects that come from `new`, with arrays; each run finds those of the runs before.
//
//   program - RUN
#include <nv.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

namespace {

struct Node {
    Node(Node *next, int number) : next(next), numbers(new int[4]), number(number) {
        for (int i = 0; i < 4; i++)
            numbers[i] = number + i;
    }
    ~Node() { delete[] numbers; }

    Node *next;
    int *numbers;
    int number;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
durum_durable Node *head;
durum_durable int count;

void add() {
    pthread_mutex_lock(&lock);
    head = new Node(head, count++);
    delete new (std::nothrow) Node(nullptr, 3);
    pthread_mutex_unlock(&lock);
}

struct Refused {
    explicit Refused(int number) {
        if (number > 0)
            throw number;
    }
    long words[40];
};

// What a constructor had that throws.
template <typename Make> bool goes_back(Make make) {
    try {
        delete make();
    } catch (int) {
        return true;
    }
    return false;
}

bool is_whole(int expected) {
    for (Node *node = head; node; node = node->next)
        if (node->number != --expected || node->numbers[3] != expected + 3)
            return false;
    return expected == 0;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    bool is_expected = is_whole(std::atoi(argv[2])) && goes_back([=] { return new Refused(argc); }) &&
                       goes_back([=] { return new (std::nothrow) Refused(argc); });
    add();
    return !is_expected;
}
