// Functions that are called without locks, whatever calls them beside those that the module shows.
#pragma once

#include "llvm/IR/Module.h"

namespace durumcc::locks {

// What a thread or the program begins with: nobody else has its address, and where it comes to it,
// no lock is held.
void find_called_outside(llvm::Module &module);

// All functions of the module, as its file was compiled with -fido-outside. But for those that
// other files may have as well (inline ones of C++, templates), and then call in sections.
void call_all_outside(llvm::Module &module);

} // namespace durumcc::locks
