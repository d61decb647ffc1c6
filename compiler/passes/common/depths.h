// How many levels of transactions are open at each place of a function, counted from its entry.
// What opens and closes levels is paired and nested, so each place has one number; but the
// optimizer may let blocks that end the program share their end.
#pragma once

#include "language.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"

#include <optional>

namespace durumcc {

class Depths {
  public:
    Depths(const llvm::Function &function, const Language &language);

    // Calls `visit` with each instruction of the function and the number behind it: nothing, if
    // ways with different numbers lead there.
    template <typename Visit> void each(llvm::Function &function, Visit visit) const {
        for (llvm::BasicBlock &block : function) {
            std::optional<int> depth = at_begin(block);
            for (llvm::Instruction &instruction : block) {
                depth = behind(instruction, depth);
                visit(instruction, depth);
            }
        }
    }

  private:
    std::optional<int> at_begin(const llvm::BasicBlock &block) const;
    std::optional<int> behind(const llvm::Instruction &instruction, std::optional<int> depth) const;

    const Language &language;
    llvm::DenseMap<const llvm::BasicBlock *, std::optional<int>> begins;
};

} // namespace durumcc
