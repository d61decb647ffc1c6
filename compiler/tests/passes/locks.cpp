// The same for C++, whose guards are functions of the library until they are inlined.
// RUN: %clang++ -O1 -g -S -emit-llvm %s -o - | %print-locks | %filecheck
// RUN: %clang++ -O2 -g -S -emit-llvm %s -o - | %print-locks | %filecheck
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

static std::mutex a, b;
static std::shared_mutex shared;
static std::condition_variable changed;
extern int value;
void may_throw();

// CHECK-LABEL: {{^}}guard: 0..many, returns 0, unwinds 0{{$}}
// CHECK: 0: pthread_mutex_lock @_ZL1a
// CHECK: 1: pthread_mutex_unlock @_ZL1a
extern "C" void guard() {
    std::lock_guard<std::mutex> guard(a);
    value = 1;
}

// An exception lets the lock go on its way.
// CHECK-LABEL: {{^}}unwound: 0..many, returns 0, unwinds 0{{$}}
// CHECK: 1: pthread_mutex_unlock @_ZL1a
// CHECK: 1: pthread_mutex_unlock @_ZL1a
extern "C" void unwound() {
    std::lock_guard<std::mutex> guard(a);
    may_throw();
}

// And without a guard it stays.
// CHECK-LABEL: {{^}}kept: 0..many, returns 0, unwinds 0..1{{$}}
extern "C" void kept() {
    a.lock();
    may_throw();
    a.unlock();
}

// CHECK-LABEL: {{^}}unique: 0..many, returns 0, unwinds 0{{$}}
extern "C" void unique() {
    std::unique_lock<std::mutex> lock(a);
    value = 2;
    lock.unlock();
    value = 3;
    lock.lock();
    value = 4;
}

// CHECK-LABEL: {{^}}tried: 0..many, returns 0{{$}}
// CHECK: 0: pthread_mutex_trylock @_ZL1a
// CHECK: 1: pthread_mutex_unlock @_ZL1a
extern "C" bool tried() {
    std::unique_lock<std::mutex> lock(a, std::try_to_lock);
    if (!lock)
        return false;
    value = 5;
    return true;
}

// Several at once.
// CHECK-LABEL: {{^}}scoped: 0..many, returns 0, unwinds 0{{$}}
// CHECK: 0: _ZSt4lockISt5mutexS0_J
// CHECK: 2: pthread_mutex_unlock @_ZL1a
// CHECK: 1: pthread_mutex_unlock @_ZL1b
extern "C" void scoped() {
    std::scoped_lock lock(a, b);
    value = 6;
}

// CHECK-LABEL: {{^}}three: 0..many, returns 3, unwinds 0{{$}}
// CHECK: 0: _ZSt4lockISt11unique_lockISt5mutexES2_JS2_EE
extern "C" void three(std::unique_lock<std::mutex> &a, std::unique_lock<std::mutex> &b, std::unique_lock<std::mutex> &c) {
    std::lock(a, b, c);
}

// Locks of the program's own, which are none to the library of threads.
// CHECK-LABEL: {{^}}own: 0..many, returns 0, unwinds 0{{$}}
struct Flag {
    bool try_lock() { return !__atomic_exchange_n(&is_taken, true, __ATOMIC_ACQUIRE); }
    void lock() {
        while (!try_lock())
            ;
    }
    void unlock() { __atomic_store_n(&is_taken, false, __ATOMIC_RELEASE); }
    bool is_taken;
};
extern "C" void own(Flag &one, Flag &other) {
    std::lock(one, other);
    value = 9;
    one.unlock();
    other.unlock();
}
// CHECK-LABEL: {{^}}own_kept: 0..many, returns 0, unwinds 0{{$}}
extern "C" void own_kept(Flag &one, Flag &other) { std::lock(one, other); }

// CHECK-LABEL: {{^}}read: 0..many, returns 0, unwinds 0{{$}}
// CHECK: 0: pthread_rwlock_rdlock
// CHECK: 1: pthread_rwlock_unlock
extern "C" int read() {
    std::shared_lock<std::shared_mutex> lock(shared);
    return value;
}

// The guard says in memory whether it owns the lock, and a function has had its address.
// CHECK-LABEL: {{^}}waits: 0..many, returns 0..1, unwinds 0..1{{$}}
// CHECK: 0: pthread_mutex_lock @_ZL1a
// CHECK: 1: _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
// CHECK: 1: pthread_mutex_unlock %
extern "C" void waits() {
    std::unique_lock<std::mutex> lock(a);
    changed.wait(lock, [] { return value == 7; });
    value = 8;
}
