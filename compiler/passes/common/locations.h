// Files and lines for the runtime's messages.
#pragma once

#include "language.h"

#include "llvm/IR/Module.h"

namespace durumcc {

// When all calls of the runtime are there.
void pass_locations(llvm::Module &module, const Language &language);

} // namespace durumcc
