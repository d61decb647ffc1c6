// The places of a function that may be in a section.
#pragma once

#include "locks/held.h"

#include "llvm/ADT/DenseMap.h"

namespace durumcc::ido {

class Inside {
  public:
    Inside(const llvm::Function &function, const locks::Held &held);

    // Every place, as if each function was called in a section.
    static Inside everywhere(const llvm::Function &function);

    bool is_empty() const { return places.empty(); }
    bool operator()(const llvm::Instruction &instruction) const {
        return places.contains(&instruction);
    }

    // How many locks are held in front of it: none, if control does not come there.
    Depth depth(const llvm::Instruction &instruction) const { return places.lookup(&instruction); }

    // Whether it is in a section for certain, if it is reached. A version of a function for
    // sections may never be called.
    bool is_certain(const llvm::Instruction &instruction) const {
        return depth(instruction).is_inside() && !is_version;
    }

  private:
    Inside() = default;

    llvm::DenseMap<const llvm::Instruction *, Depth> places;
    bool is_version = false;
};

} // namespace durumcc::ido
