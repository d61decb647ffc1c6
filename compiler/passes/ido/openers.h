// Functions that decide when the heap is opened: they open it, or make another process, which has
// to be done before.
#pragma once

#include "llvm/IR/Module.h"

namespace durumcc::ido {

bool is_opener(const llvm::Function &function);

// In front of what a value has to be known for a use of it.
llvm::Instruction *before(const llvm::Use &use);

// Others do not become a part of them: what is in the heap is asked for behind the decision.
void keep_openers_apart(llvm::Module &module);

} // namespace durumcc::ido
