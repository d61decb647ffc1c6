#include "locks/calls.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Function.h"

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
        .Default(std::nullopt);
}

} // namespace

std::optional<Action> action_of(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    if (!callee)
        return std::nullopt;
    // A template: how often it goes round is in a variable.
    if (callee->getName().starts_with("_ZSt4lockI"))
        return Action::TakeAll;
    return is_action(*callee) ? action_named(callee->getName()) : std::nullopt;
}

bool is_action(const Function &function) {
    // A program that defines such a function has locks of its own, which its code tells about.
    return function.isDeclaration() && action_named(function.getName()).has_value();
}

const Value *lock_of(const CallBase &call) {
    switch (*action_of(call)) {
    case Action::Take:
    case Action::Try:
    case Action::Release:
        return call.getArgOperand(0);
    case Action::Wait:
        return call.getArgOperand(1);
    case Action::TakeAll:
    case Action::Begin:
    case Action::End:
        return nullptr;
    }
    llvm_unreachable("all actions are there");
}

} // namespace durumcc::locks
