// What calls of the threads' library do to the locks that a thread holds.
#pragma once

#include "llvm/IR/InstrTypes.h"

#include <optional>

namespace durumcc::locks {

enum class Action {
    // It takes a lock. Whoever does not look at its result relies on that.
    Take,
    // It takes a lock, or says that it did not.
    Try,
    // std::lock: it takes as many as it has arguments, and while it tries to lets some go again.
    TakeAll,
    Release,
    // It lets its lock go, sleeps, and has it again behind the call, whatever it returns.
    Wait,
    // A region that no lock guards: durum_durable_begin and durum_durable_end.
    Begin,
    End,
};

// Nothing, if the instruction does none of it.
std::optional<Action> action_of(const llvm::Instruction &instruction);

// Whether calls of the function do some of it.
bool is_action(const llvm::Function &function);

// The lock that is taken, released or slept with, or the std::unique_lock of it. Null for regions,
// and for several locks.
const llvm::Value *lock_of(const llvm::CallBase &call);

} // namespace durumcc::locks
