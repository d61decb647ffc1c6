// What the places of locks tell by themselves to be a mistake, or beyond what recovery can do.
#pragma once

#include "locks/held.h"

namespace durumcc::locks {

enum class Kind {
    // A lock is let go where the thread has none.
    Release,
    // A thread waits with a lock that another one may need to wake it: after a crash the sections
    // of both are resumed, and neither comes to an end.
    Wait,
    // It waits with a lock that it does not have.
    WaitWithout,
};

struct Problem {
    const llvm::CallBase *call;
    Kind kind;
};

// Those that are there on every way to the place; what only some ways do is left to the run.
llvm::SmallVector<Problem, 4> problems_in(const llvm::Function &function, const Held &held);

} // namespace durumcc::locks
