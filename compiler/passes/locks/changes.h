// Functions that return with more locks than they were called with, or fewer, have symbols that
// tell it: `lock_both.durum_locks.2`. So a file that expects something else does not link.
#pragma once

#include "locks/held.h"

namespace durumcc::locks {

// What the symbol tells. Nothing, if it has no such end.
std::optional<Depth> told_change(const llvm::GlobalValue &function);

// What functions do that other files may call becomes a part of their symbols. Those whose
// declarations say something else.
llvm::SmallVector<llvm::Function *, 2> tell_changes(llvm::Module &module, const Held &held);

} // namespace durumcc::locks
