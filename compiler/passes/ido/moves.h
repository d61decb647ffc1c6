// memmove of parts that may overlap reads what it has overwritten, so it cannot be done again.
#pragma once

#include "ido/sections.h"

#include "llvm/IR/PassManager.h"

namespace durumcc::ido {

// Each becomes copies that can be, with a place between them where a region begins.
void replace_moves(llvm::Function &function, const Inside &inside, llvm::Value *thread,
                   llvm::FunctionAnalysisManager &analyses);

} // namespace durumcc::ido
