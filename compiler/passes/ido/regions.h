// Where the code of sections is cut into regions that can be done again (iDO, §II-B and §IV-A).
//
// After a crash a section goes on at the begin of the region in which it was, which is where its
// last record was made. So no region may overwrite what it has read from memory before: it would
// read something else the second time. And what is done once, as locks are taken, has no place
// between a record and a store that depends on it.
//
//   x = a[0];                 x = a[0];
//                             ---- a new region, whose live-in is x
//   b[0] = x;                 b[0] = x;
//   a[0] = x + 1;             a[0] = x + 1;
//
// What only reads in front of the first store needs no record: without a store nothing that lasts
// tells that it has been done.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/PassManager.h"

namespace durumcc::ido {

// Whether the instruction may be part of a region. Others are done once: what others see, or what
// has regions of its own.
bool may_be_repeated(const llvm::Instruction &instruction);

// Whether a place may be in a section.
using IsInside = llvm::function_ref<bool(const llvm::Instruction &)>;

// Blocks that may come again, also in loops that have several entries.
llvm::SmallPtrSet<const llvm::BasicBlock *, 16> blocks_in_loops(const llvm::Function &function);

// A region has to begin between the two.
struct Conflict {
    // What reads something that the writer may overwrite, or is done once. Null: the begin of the
    // function.
    llvm::Instruction *first;
    llvm::Instruction *writer;

    bool is_overwrite() const { return first && may_be_repeated(*first); }
};

// What tests leave out, and have to notice then.
struct Omitted {
    // Of the overwrites, every one of this number. 0: none.
    unsigned overwrites = 0;
    unsigned overwrites_seen = 0;
    // That the two may belong to different turns of a loop.
    bool turns = false;
    // That what the system is asked for is done once.
    bool asked = false;
    // That others see a word of an atomic store before it is durable.
    bool words = false;

    // leave-out=N, one-turn, ask-again, or atomic-words; whether the word is one of these.
    bool read(llvm::StringRef word);
};

// All of a function that has no cuts yet.
llvm::SmallVector<Conflict, 16> conflicts_in(llvm::Function &function, IsInside is_inside,
                                             llvm::FunctionAnalysisManager &analyses,
                                             Omitted &omitted);

// A region ends in front of the instruction, and the next one begins.
struct Cut {
    llvm::Instruction *place;
    // One of those that it is there for: an overwrite, if there is one.
    Conflict conflict;
};

// Each way from the first to the writer of a conflict passes one.
llvm::SmallVector<Cut, 16> cuts_for(llvm::ArrayRef<Conflict> conflicts, llvm::Function &function,
                                    llvm::FunctionAnalysisManager &analyses);

// Whether blocks can be cut out of the function, and each is entered in ways that are known.
bool can_be_split(const llvm::Function &function);

// Makes a block without phis begin at each of the instructions.
void make_blocks(llvm::Function &function, llvm::ArrayRef<llvm::Instruction *> begins);

// The values that are used where a block begins or later, and were made before. Locals are always
// there, and so is what the runtime is asked for. Where a block begins outside of sections nothing
// is live: no section goes on from there.
class Live {
  public:
    Live(llvm::Function &function, IsInside is_inside);

    // In an order that is always the same.
    llvm::ArrayRef<llvm::Value *> at(const llvm::BasicBlock &block) const;

  private:
    llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<llvm::Value *, 8>> values;
};

} // namespace durumcc::ido
