#include "locks/calls.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Demangle/Demangle.h"

namespace durumcc::locks {
namespace {

using namespace llvm;

// Those with `clock` have their time by a clock of the caller's choice (glibc 2.30).
// The runtime's have another name in front (ido/lock_calls.cpp).
std::optional<Action> action_named(StringRef name) {
    name.consume_front("__durum_ido_");
    return StringSwitch<std::optional<Action>>(name)
        .Cases("pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
               "pthread_spin_lock", Action::Take)
        .Cases("pthread_mutex_trylock", "pthread_rwlock_tryrdlock", "pthread_rwlock_trywrlock",
               "pthread_spin_trylock", Action::Try)
        .Cases("pthread_mutex_timedlock", "pthread_rwlock_timedrdlock",
               "pthread_rwlock_timedwrlock", Action::Try)
        .Cases("pthread_mutex_clocklock", "pthread_rwlock_clockrdlock",
               "pthread_rwlock_clockwrlock", Action::Try)
        .Cases("pthread_mutex_unlock", "pthread_rwlock_unlock", "pthread_spin_unlock",
               Action::Release)
        .Cases("pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait",
               Action::Wait)
        // std::condition_variable::wait is no template: its code is in the library.
        .Case("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", Action::Wait)
        .Case("durum_durable_begin", Action::Begin)
        .Case("durum_durable_end", Action::End)
        // <threads.h> of C11.
        .Case("mtx_lock", Action::Take)
        .Cases("mtx_trylock", "mtx_timedlock", Action::Try)
        .Case("mtx_unlock", Action::Release)
        .Cases("cnd_wait", "cnd_timedwait", Action::Wait)
        .Default(std::nullopt);
}

bool is_lock_of_library(StringRef type) {
    if (type.consume_front("std::unique_lock<") || type.consume_front("std::shared_lock<"))
        type = type.drop_back();
    return StringSwitch<bool>(type)
        .Cases("std::mutex", "std::recursive_mutex", "std::shared_mutex", true)
        .Cases("std::timed_mutex", "std::recursive_timed_mutex", "std::shared_timed_mutex", true)
        .Default(false);
}

} // namespace

const GlobalValue *called_by(const CallBase &call) {
    return dyn_cast<GlobalValue>(call.getCalledOperand()->stripPointerCasts());
}

const Function *callee_of(const CallBase &call) {
    const GlobalValue *called = called_by(call);
    return called ? dyn_cast_or_null<Function>(called->getAliaseeObject()) : nullptr;
}

std::optional<Action> action_of(const GlobalValue &called) {
    // A template: how often it goes round is in a variable.
    if (locks_taken_by(called))
        return Action::TakeAll;
    // A program that defines such a function has locks of its own, which its code tells about. A
    // weak one is there for the case that the library is not.
    const bool is_library = called.isDeclarationForLinker() || called.isInterposable();
    return is_library ? action_named(called.getName()) : std::nullopt;
}

std::optional<Action> action_of(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    const GlobalValue *called = call ? called_by(*call) : nullptr;
    return called ? action_of(*called) : std::nullopt;
}

// Its arguments do not tell: an optimizer may leave some out.
unsigned locks_taken_by(const GlobalValue &called) {
    if (!called.getName().starts_with("_ZSt4lockI"))
        return 0;
    const std::string name = demangle(called.getName());
    StringRef text = name;
    if (!text.consume_front("void std::lock<"))
        return 0;
    SmallVector<StringRef, 4> locks;
    text.take_until([](char letter) { return letter == '('; }).drop_back().split(locks, ", ");
    return all_of(locks, is_lock_of_library) ? locks.size() : 0;
}

const Value *lock_of(const CallBase &call) {
    auto argument = [&](unsigned number) {
        return number < call.arg_size() ? call.getArgOperand(number) : nullptr;
    };
    switch (*action_of(call)) {
    case Action::Take:
    case Action::Try:
    case Action::Release:
        return argument(0);
    case Action::Wait:
        return argument(1);
    case Action::TakeAll:
    case Action::Begin:
    case Action::End:
        return nullptr;
    }
    llvm_unreachable("all actions are there");
}

} // namespace durumcc::locks
