// Kills threads that use the durable structures, again and again, and looks at what is there each
// time the heap is opened:
//
//   kill_structures KILLS SEED
//
// What a thread has told of is there, each value once and in order; of what it was doing when it
// was killed, all is there or nothing. What threads tell is in a file beside the heap. COME_BACK
// names a command that puts another heap in the place of this one: the same is there, too.
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <nv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "guarded_stack.hpp"

extern "C" {
#include "list.h"
#include "map.h"
#include "queue.h"
#include "stack.h"
}

namespace {

constexpr unsigned threads = 4, exchanges = 3, tables = 2, keys_per_thread = 16;
constexpr std::uint64_t values_max = std::uint64_t(1) << 22;
// Who examines takes values, too.
constexpr unsigned examiner = threads;

struct Root {
    std::uint64_t is_made;
    stack first;
    queue second;
    list third;
    map fourth;
    alignas(GuardedStack) unsigned char fifth[sizeof(GuardedStack)];

    GuardedStack &guarded() { return *reinterpret_cast<GuardedStack *>(fifth); }
};

// A change of a key. Its value is 0 where the key is removed.
struct Change {
    std::uint64_t is_begun, place, value;
};

// What threads have told of: it survives a kill.
struct Told {
    std::uint64_t begun[exchanges][threads];      // values that were put, or are being put
    std::uint64_t taking[exchanges][threads + 1]; // how many takes have begun, and not ended
    std::uint8_t is_put[exchanges][values_max], is_taken[exchanges][values_max];
    std::uint64_t expected[tables][threads][keys_per_thread];
    Change changes[tables][threads];
    std::uint64_t operations;
};

volatile Told *told;
Root *root;

[[noreturn]] void fail(const char *what, std::uint64_t found, std::uint64_t expected) {
    std::fprintf(stderr, "%s: %" PRIu64 ", and not %" PRIu64 "\n", what, found, expected);
    std::exit(3);
}

bool put(unsigned exchange, std::uint64_t value) {
    switch (exchange) {
    case 0:
        return stack_push(&root->first, value);
    case 1:
        return queue_put(&root->second, value);
    default:
        root->guarded().push(value);
        return true;
    }
}

bool take(unsigned exchange, std::uint64_t *value) {
    switch (exchange) {
    case 0:
        return stack_pop(&root->first, value);
    case 1:
        return queue_take(&root->second, value);
    default:
        const auto taken = root->guarded().pop();
        *value = taken.value_or(0);
        return taken.has_value();
    }
}

bool change(unsigned table, std::uint64_t key, std::uint64_t value) {
    if (table == 0)
        return value ? list_insert(&root->third, key, value) : list_remove(&root->third, key);
    return value ? map_put(&root->fourth, key, value) : map_remove(&root->fourth, key);
}

std::uint64_t look_up(unsigned table, std::uint64_t key) {
    std::uint64_t value = 0;
    table == 0 ? list_find(&root->third, key, &value) : map_find(&root->fourth, key, &value);
    return value;
}

bool take_and_tell(unsigned self, unsigned exchange, std::uint64_t *value) {
    told->taking[exchange][self]++;
    const bool is_there = take(exchange, value);
    if (is_there && *value >= values_max)
        fail("a value that nobody has put", *value, 0);
    if (is_there && told->is_taken[exchange][*value]++)
        fail("a value is taken again", *value, 0);
    told->taking[exchange][self]--;
    return is_there;
}

void work(unsigned self, std::uint64_t random) {
    for (;;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const unsigned exchange = (random >> 33) % exchanges, table = (random >> 40) % tables;
        std::uint64_t value = told->begun[exchange][self] * threads + self;
        Change change_;
        switch ((random >> 60) % 4) {
        case 0:
            if (value >= values_max)
                return;
            told->begun[exchange][self]++;
            if (!put(exchange, value))
                fail("no memory for a value", value, 0);
            told->is_put[exchange][value] = 1;
            break;
        case 1:
            take_and_tell(self, exchange, &value);
            break;
        default:
            change_ = {1, (random >> 45) % keys_per_thread, (random >> 50) % 3 ? random >> 1 : 0};
            volatile Change &doing = told->changes[table][self];
            doing.place = change_.place;
            doing.value = change_.value;
            doing.is_begun = 1;
            change(table, change_.place * threads + self, change_.value);
            told->expected[table][self][change_.place] = change_.value;
            doing.is_begun = 0;
        }
        __atomic_fetch_add(&told->operations, 1, __ATOMIC_RELAXED);
    }
}

// Takes all that is there: it has the order in which each thread has put it, or the other one.
void examine_exchange(unsigned exchange) {
    std::vector<bool> is_there(values_max);
    std::vector<std::uint64_t> last(threads, exchange == 1 ? 0 : values_max);
    for (std::uint64_t value; take_and_tell(examiner, exchange, &value);) {
        const std::uint64_t turn = value / threads, before = last[value % threads];
        if (turn >= told->begun[exchange][value % threads])
            fail("a value that nobody has put", value, 0);
        if (exchange == 1 ? turn < before : turn >= before)
            fail("a value in the wrong order", turn, before);
        last[value % threads] = exchange == 1 ? turn + 1 : turn;
    }
    std::uint64_t missing = 0, takes = 0;
    for (unsigned self = 0; self < threads; self++)
        for (std::uint64_t turn = 0; turn < told->begun[exchange][self]; turn++) {
            const std::uint64_t value = turn * threads + self;
            missing += told->is_put[exchange][value] && !told->is_taken[exchange][value];
        }
    for (unsigned self = 0; self <= threads; self++)
        takes += told->taking[exchange][self];
    // Each take that was interrupted may have one.
    if (missing > takes)
        fail("values are missing", missing, takes);
    for (unsigned self = 0; self < threads; self++)
        for (std::uint64_t turn = 0; turn < told->begun[exchange][self]; turn++)
            told->is_taken[exchange][turn * threads + self] = 1;
    for (unsigned self = 0; self <= threads; self++)
        told->taking[exchange][self] = 0;
}

void examine_table(unsigned table) {
    for (unsigned self = 0; self < threads; self++) {
        volatile Change &doing = told->changes[table][self];
        for (std::uint64_t place = 0; place < keys_per_thread; place++) {
            const std::uint64_t found = look_up(table, place * threads + self);
            volatile std::uint64_t &expected = told->expected[table][self][place];
            const bool is_done = doing.is_begun && doing.place == place && found == doing.value;
            if (found != expected && !is_done)
                fail("a key has another value", found, expected);
            expected = found;
        }
        doing.is_begun = 0;
    }
}

void examine() {
    for (unsigned exchange = 0; exchange < exchanges; exchange++)
        examine_exchange(exchange);
    if (root->first.count != 0)
        fail("the stack counts values that it has not", root->first.count, 0);
    if (root->guarded().size() != 0)
        fail("the stack with guards counts values that it has not", root->guarded().size(), 0);
    for (unsigned table = 0; table < tables; table++)
        examine_table(table);
}

void make() {
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    Root *made = root;
    pthread_mutex_lock(&making);
    if (!made->is_made) {
        stack_begin(&made->first);
        if (!queue_begin(&made->second))
            std::abort();
        list_begin(&made->third);
        map_begin(&made->fourth);
        new (made->fifth) GuardedStack;
        made->is_made = 1;
    }
    pthread_mutex_unlock(&making);
}

void open_heap(const char *path) {
    if (nv_open(path) != 0) {
        std::fprintf(stderr, "%s: %s\n", path, nv_error());
        std::exit(4);
    }
    root = static_cast<Root *>(nv_root(sizeof *root));
}

void run(const char *path, std::uint64_t seed) {
    open_heap(path);
    make();
    examine();
    std::vector<std::thread> running;
    for (unsigned self = 0; self < threads; self++)
        running.emplace_back(work, self, seed + self);
    pause();
}

void put_some() {
    for (unsigned exchange = 0; exchange < exchanges; exchange++)
        for (unsigned self = 0; self < threads; self++)
            for (unsigned count = 0; count < 50; count++) {
                const std::uint64_t value = told->begun[exchange][self]++ * threads + self;
                if (value >= values_max || !put(exchange, value))
                    fail("no memory for a value", value, 0);
                told->is_put[exchange][value] = 1;
            }
}

// The child goes on until it is killed, or ends by itself if `nanoseconds` are 0.
int status_of_child(const char *path, std::uint64_t seed, long nanoseconds) {
    const pid_t child = fork();
    if (child == 0) {
        if (nanoseconds)
            run(path, seed);
        open_heap(path);
        make();
        examine();
        put_some();
        std::exit(0);
    }
    if (nanoseconds) {
        const timespec a_moment = {0, nanoseconds};
        nanosleep(&a_moment, nullptr);
        kill(child, SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

} // namespace

int main(int count, char **arguments) {
    // In memory: what is killed has lost nothing else.
    char directory[] = "/dev/shm/durum-structures-XXXXXX";
    if (count != 3 || !mkdtemp(directory)) {
        std::fprintf(stderr, "usage: kill_structures KILLS SEED\n");
        return 2;
    }
    const int kills_max = std::atoi(arguments[1]);
    std::srand(unsigned(std::atoi(arguments[2])));
    char path[64], file_path[64], remove[64];
    std::snprintf(path, sizeof path, "%s/heap", directory);
    std::snprintf(file_path, sizeof file_path, "%s/told", directory);
    std::snprintf(remove, sizeof remove, "rm -r %s", directory);
    const int file = open(file_path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *told) != 0)
        return 2;
    void *mapped = mmap(nullptr, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        return 2;
    told = static_cast<volatile Told *>(mapped);
    for (int kills = 0; kills < kills_max; kills++) {
        const int status = status_of_child(path, std::uint64_t(std::rand()) << 8,
                                           1000000 + std::rand() % 60000000);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
            std::fprintf(stderr, "%s after %d kills: status %#x\n", directory, kills,
                         unsigned(status));
            return 1;
        }
    }
    if (status_of_child(path, 0, 0) != 0)
        return 1;
    if (std::getenv("COME_BACK")) {
        setenv("HEAP", path, 1);
        if (std::system("$COME_BACK \"$HEAP\"") != 0 || status_of_child(path, 0, 0) != 0)
            return 1;
    }
    std::printf("%d kills, %" PRIu64 " operations\n", kills_max, std::uint64_t(told->operations));
    return told->operations == 0 || std::system(remove) != 0;
}
