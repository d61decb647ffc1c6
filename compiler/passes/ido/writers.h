// What stores, and can be done again.
#pragma once

#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/IR/Instruction.h"

namespace durumcc::ido {

// The pointer by which the instruction stores: an operand of it. Null, if it stores nothing, or is
// done once.
llvm::Use *place_written(llvm::Instruction &instruction);

// Counters are no memory that anybody relies on.
bool is_writer(const llvm::Instruction &instruction);

// What a writer may write.
llvm::MemoryLocation written_by(const llvm::Instruction &writer);

// A store of vectors, of which some parts may be left out.
bool is_masked_store(const llvm::Instruction &instruction);

} // namespace durumcc::ido
