// Global variables that last: they lie in the store, and the runtime knows where.
#pragma once

#include "llvm/IR/Module.h"

#include <string>

namespace durumcc::ido {

// Of the variables that are declared durable each use becomes one of what the runtime gives for it.
void move_globals(llvm::Module &module);

// Moves to a place in front of all uses what asks where variables are: once for each. Where it has
// yet to be decided when the heap is opened, each block asks.
void ask_early(llvm::Function &function, llvm::BasicBlock::iterator place);

// Whether two pointers lead to different objects, as one of them leads to such a variable. LLVM
// sees calls of the runtime there, which may give any pointer.
bool are_apart(const llvm::Value *one, const llvm::Value *other);

// A name that the variable has in each run of the program: that of its file in front, if only the
// file knows it.
std::string lasting_name(const llvm::GlobalVariable &variable);

} // namespace durumcc::ido
