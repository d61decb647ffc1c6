// What calls of the threads' library do to the locks that a thread holds.
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"

#include <optional>

namespace durumcc::locks {

enum class Action {
    // It takes a lock. Whoever does not look at its result relies on that.
    Take,
    // It takes a lock, or says that it did not.
    Try,
    // std::lock: it takes several, and while it tries to lets some go again.
    TakeAll,
    Release,
    // It lets its lock go, sleeps, and has it again behind the call, whatever it returns.
    Wait,
    // A region that no lock guards: durum_durable_begin and durum_durable_end.
    Begin,
    End,
};

// What is called, also as if it were a function of another type. Null for what is called by a
// pointer.
const llvm::GlobalValue *called_by(const llvm::CallBase &call);

// The code of that, or its declaration.
const llvm::Function *callee_of(const llvm::CallBase &call);

// Nothing, if it does none of it.
std::optional<Action> action_of(const llvm::GlobalValue &called);
std::optional<Action> action_of(const llvm::Instruction &instruction);

// How many locks std::lock takes. 0 for other functions, and if they are none of the library's: a
// lock of a program's own has code.
unsigned locks_taken_by(const llvm::GlobalValue &called);

// The lock that is taken, released or slept with, or the std::unique_lock of it. Null for regions,
// for several locks, and if the call has no such argument.
const llvm::Value *lock_of(const llvm::CallBase &call);

} // namespace durumcc::locks
