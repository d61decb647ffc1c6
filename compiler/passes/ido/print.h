// The regions of sections, for tests and for those who look into them.
#pragma once

#include "llvm/IR/PassManager.h"
#include "llvm/Support/raw_ostream.h"

namespace durumcc::ido {

// Makes a block of each region.
void print(llvm::Module &module, llvm::ModuleAnalysisManager &analyses, llvm::raw_ostream &out);

} // namespace durumcc::ido
