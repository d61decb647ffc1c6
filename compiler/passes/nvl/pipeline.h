// What NVL-C does to a module at each extension point.
#pragma once

#include "llvm/IR/PassManager.h"

namespace durumcc::nvl {

// Before any other pass: what only the front end's code tells.
void begin(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);

// When variables have come into registers.
void simplify(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);

// When functions have been inlined and loops simplified, and before loops are vectorized.
void end(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);

} // namespace durumcc::nvl
