// Locks of the program itself have other addresses when it runs again: they are recorded by names.
#pragma once

#include "llvm/IR/Module.h"

namespace durumcc::ido {

// Tells the runtime of all global variables that may be or hold a lock.
void name_locks(llvm::Module &module);

} // namespace durumcc::ido
