// What the inference of locks has found, for tests and for those who look into it.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace durumcc::locks {

void print(llvm::Module &module, llvm::raw_ostream &out);

} // namespace durumcc::locks
