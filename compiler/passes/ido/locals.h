// Locals of functions that run in sections: a section that goes on after a crash finds them where
// they were, on a stack of its own that lasts (iDO, §IV-C).
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace durumcc::ido {

// Locals become values where they can be, else they move to the thread's stack that lasts, and so
// do arguments that the caller has copied to its own.
void move_locals(llvm::Function &function, llvm::Value *thread,
                 llvm::FunctionAnalysisManager &analyses);

// Whether a value may lead to locals that last.
bool leads_to_locals(const llvm::Value &value);

// No record needs them: then they need no heap.
void forget_locals(llvm::Function &function);

} // namespace durumcc::ido
