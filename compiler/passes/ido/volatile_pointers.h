// Pointers to what is gone in the next run, and where they are stored in the heap.
#pragma once

#include "llvm/IR/Module.h"

namespace durumcc::ido {

// In the values that durable variables begin with.
void warn_of_volatile_pointers(const llvm::GlobalVariable &variable);

// In the code of the program, when the optimizer has followed its values.
void warn_of_volatile_pointers(const llvm::Module &module);

} // namespace durumcc::ido
