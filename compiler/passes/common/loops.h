// Loops that write element after element: one call for all of them.
//
//   for (i = 0; i < n; i++)                   log(a, n * 8)
//       log(&a[i], 8), a[i] = x;              for (i = 0; i < n; i++) a[i] = x;
//
// Nested loops over rows that lie behind each other become one range, others one range a row.
#pragma once

#include "writes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"

namespace durumcc {

// Where a range is announced: before the loop that writes it, or behind.
enum class Side { Before, Behind };

// What a loop writes, and the place for the call that announces it.
struct Range {
    Bytes bytes;
    llvm::Instruction *before;
    llvm::DebugLoc location;
};

// The loops of a function, whose blocks and ends must not be changed meanwhile.
class Loops {
  public:
    Loops(llvm::Function &function, const llvm::TargetLibraryInfo &library);

    // Takes from the list what loops write densely, and gives it as ranges.
    llvm::SmallVector<Range, 4> take_ranges(llvm::SmallVectorImpl<Write> &writes, Side side);

    // Whether take_ranges would take all of these that are in loops.
    bool are_ranges(llvm::ArrayRef<Write> writes, Side side);

    // The outermost loop around a block that nobody can look into while it runs, or null.
    const llvm::Loop *quiet_loop(const llvm::BasicBlock &block);

  private:
    struct Piece;

    llvm::SmallVector<Piece, 4> find(llvm::ArrayRef<Write> writes, Side side);
    std::optional<Piece> piece_of(llvm::ArrayRef<Write> writes, unsigned index);
    const llvm::BasicBlock *block_of(const llvm::Loop &loop, const Write &write,
                                     const llvm::SCEV *start) const;
    bool is_in_each_round(const llvm::Loop &loop, const llvm::BasicBlock *block,
                          const llvm::BasicBlock *exiting) const;
    bool is_quiet(const llvm::Loop &loop);
    bool spread_over_loop(Piece &piece, llvm::SmallVectorImpl<Piece> &others, Side side);
    bool complete_element(Piece &piece, llvm::SmallVectorImpl<Piece> &others,
                          const llvm::Loop &loop, const llvm::SCEV *step, const llvm::SCEV *&start,
                          const llvm::SCEV *&bytes);
    const llvm::SCEV *number(int64_t value);

    const llvm::DataLayout &layout;
    // Asked for what it knows only.
    mutable llvm::TargetLibraryInfo library;
    llvm::AssumptionCache assumptions;
    llvm::DominatorTree dominators;
    llvm::LoopInfo loops;
    mutable llvm::ScalarEvolution evolution;
    llvm::DenseMap<const llvm::Loop *, bool> quiet;
};

} // namespace durumcc
