// What counts how often code is done (--coverage, -fprofile-generate, -fprofile-instr-generate). It
// is gone with the process, and what a region does again may count again.
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/IR/Value.h"

namespace durumcc::ido {

// Whether a pointer leads to counters.
bool is_counter(const llvm::Value *pointer);

// Functions that keep counts, or write them to files when the program ends.
bool counts(const llvm::Function &function);

} // namespace durumcc::ido
