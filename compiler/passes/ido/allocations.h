// Memory that programs take: the heap is told what it will hold, and with -fdurable-malloc what a
// program takes from its system is taken from the heap.
#pragma once

#include "llvm/IR/Module.h"

namespace durumcc::ido {

// Before those move.
void type_allocations(llvm::Module &module);
void move_allocations(llvm::Module &module);

} // namespace durumcc::ido
