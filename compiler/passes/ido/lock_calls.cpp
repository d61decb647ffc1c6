// A lock in an object that lasts has a state that does not, and each one that is held is in the
// thread's record.
//
//   call i32 @pthread_mutex_lock(ptr %l)      call i32 @__durum_ido_pthread_mutex_lock(ptr %l)
#include "ido/lock_calls.h"

#include "ido/runtime.h"
#include "locks/calls.h"

#include "llvm/ADT/StringSwitch.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// Those that take and release no lock, and use one.
bool uses_locks(StringRef name) {
    return StringSwitch<bool>(name)
        .Cases("pthread_mutex_init", "pthread_mutex_destroy", true)
        .Cases("pthread_rwlock_init", "pthread_rwlock_destroy", true)
        .Cases("pthread_spin_init", "pthread_spin_destroy", true)
        .Cases("pthread_cond_init", "pthread_cond_destroy", true)
        .Cases("pthread_cond_signal", "pthread_cond_broadcast", true)
        .Cases("mtx_init", "mtx_destroy", "cnd_init", "cnd_destroy", true)
        .Cases("cnd_signal", "cnd_broadcast", true)
        .Default(false);
}

} // namespace

void replace_lock_calls(Module &module) {
    for (Function &function : make_early_inc_range(module)) {
        if (!function.isDeclaration() || function.getName().starts_with(runtime::prefix))
            continue;
        if (!locks::action_of(function) && !uses_locks(function.getName()))
            continue;
        const std::string name = (runtime::prefix + function.getName()).str();
        FunctionCallee callee =
            module.getOrInsertFunction(name, function.getFunctionType(), function.getAttributes());
        function.replaceAllUsesWith(callee.getCallee());
        function.eraseFromParent();
    }
}

} // namespace durumcc::ido
