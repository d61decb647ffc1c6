// -fdurable-malloc: memory that a program takes from its system is taken from the heap.
#pragma once

#include "llvm/IR/Module.h"

namespace durumcc::ido {

void move_allocations(llvm::Module &module);

} // namespace durumcc::ido
