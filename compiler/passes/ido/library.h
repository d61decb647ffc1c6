// Functions of the C library that sections may call (library.def). Those that only read are known
// by their attributes.
#pragma once

#include "ido/sections.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PassManager.h"

namespace durumcc::ido {

// Whether its arguments and what they lead to determine what it does: it can be done again.
bool is_determined(const llvm::Instruction &instruction);

// Whether it says something else each time: it is done once.
bool is_asked(const llvm::Instruction &instruction);

// The argument that leads to where it fills memory. Null, if it does not.
llvm::Use *place_filled(llvm::Instruction &instruction);

// How much that is at most.
llvm::MemoryLocation filled_by(const llvm::CallBase &call);

// How many bytes that were, behind the call.
llvm::Value *size_filled(llvm::CallBase &call, llvm::IRBuilderBase &builder);

// The pointers whose memory a call reads that can be done again. A gather has a vector of them.
llvm::SmallVector<llvm::Value *, 2> read_by(const llvm::CallBase &call);

// The optimizer knows which functions only read, and does not run at -O0.
void tell_readers(llvm::Module &module, llvm::FunctionAnalysisManager &analyses);

// What is told in memory becomes a value, which is stored as any other one. Whether the function
// has changed.
bool store_answers(llvm::Function &function, const Inside &inside);

} // namespace durumcc::ido
