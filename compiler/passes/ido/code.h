// What tells the code of a function from another one, and the tables by which the runtime finds it.
#pragma once

#include "llvm/IR/Function.h"

namespace durumcc::ido {

// Of what the instructions do, whatever the names of values and the lines are: 48 bits, and not 0.
uint64_t hash_of(const llvm::Function &function);

} // namespace durumcc::ido
