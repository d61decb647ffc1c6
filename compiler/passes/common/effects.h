// Attributes that are not true any more when functions have got calls of the runtime.
#pragma once

#include "language.h"

#include "llvm/IR/Module.h"

namespace durumcc {

void forget_effects(llvm::Module &module, const Language &language);

} // namespace durumcc
