// How many levels of transactions are open at each place of a function, counted from its entry.
// Calls of __nvl_tx_begin and __nvl_tx_end are paired and nested (docs/nvl-ir.md), so each place
// has one number; but the optimizer may let blocks that end the program share their end.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"

#include <optional>

namespace nvl {

class Depths {
  public:
    explicit Depths(const llvm::Function &function);

    // At the begin of the block. Nothing, if ways with different numbers lead there.
    std::optional<int> at_begin(const llvm::BasicBlock &block) const;
    // Behind the instruction, if `depth` is in front of it.
    static std::optional<int> behind(const llvm::Instruction &instruction,
                                     std::optional<int> depth);

  private:
    llvm::DenseMap<const llvm::BasicBlock *, std::optional<int>> begins;
};

// Whether a level begins or ends here.
bool is_boundary(const llvm::Instruction &instruction);

} // namespace nvl
