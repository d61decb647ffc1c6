// How many levels of transactions or sections are open at each place of a function, counted from
// its entry.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"

#include <optional>

namespace durumcc {

// Of the ways that lead to a place, the fewest levels and the most; or by how many they change.
// From `many` on nobody counts, so that loops which open a level at each turn come to an end.
struct Depth {
    static constexpr int many = 64;

    int min = 0;
    int max = 0;

    bool is_inside() const { return min > 0; }
    bool may_be_inside() const { return max > 0; }

    bool operator==(const Depth &other) const { return min == other.min && max == other.max; }
    bool operator!=(const Depth &other) const { return !(*this == other); }
};

Depth operator+(Depth depth, Depth change);
// What holds where ways with both meet.
Depth operator|(Depth one, Depth other);

// What opens and closes levels.
class Levels {
  public:
    // By how many more levels are open behind the instruction. Nothing, if control does not come
    // behind it.
    virtual std::optional<Depth> change(const llvm::Instruction &instruction) const = 0;

    // The same for the way from the end of a block to one of its successors.
    virtual std::optional<Depth> change_to(const llvm::Instruction &, unsigned) const {
        return Depth{};
    }

  protected:
    ~Levels() = default;
};

class Depths {
  public:
    Depths(const llvm::Function &function, const Levels &levels);

    // Calls `visit` with each instruction of the function and the depth in front of it: nothing, if
    // control does not come there.
    template <typename Function, typename Visit> void each(Function &function, Visit visit) const {
        for (auto &block : function) {
            std::optional<Depth> depth = at_begin(block);
            for (auto &instruction : block) {
                visit(instruction, depth);
                depth = behind(instruction, depth);
            }
        }
    }

    std::optional<Depth> behind(const llvm::Instruction &instruction,
                                std::optional<Depth> depth) const;

  private:
    std::optional<Depth> at_begin(const llvm::BasicBlock &block) const;

    const Levels &levels;
    llvm::DenseMap<const llvm::BasicBlock *, Depth> begins;
};

} // namespace durumcc
