// Where the code of sections is cut into regions that can be done again (iDO, §II-B and §IV-A).
//
// After a crash a section goes on at the begin of the region in which it was. So no region may
// overwrite what it has read from memory before: it would read something else the second time.
//
//   x = a[0];                 x = a[0];
//   b[0] = x;                 b[0] = x;
//                             ---- a new region, whose live-in is x
//   a[0] = x + 1;             a[0] = x + 1;
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/PassManager.h"

#include <optional>

namespace durumcc::ido {

// Whether the instruction may be part of a region. Others stand between regions, and are done once:
// what others see, or what has regions of its own.
bool may_be_repeated(const llvm::Instruction &instruction);

// Whether a place may be in a section.
using IsInside = llvm::function_ref<bool(const llvm::Instruction &)>;

// What a region would read first and overwrite then.
struct Overwrite {
    llvm::Instruction *reader;
    llvm::Instruction *writer;
};

// All of a function that has no cuts yet.
llvm::SmallVector<Overwrite, 16> overwrites_in(llvm::Function &function, IsInside is_inside,
                                               llvm::FunctionAnalysisManager &analyses);

// A region ends in front of the instruction, and the next one begins.
struct Cut {
    llvm::Instruction *place;
    // One of those that it is there for.
    Overwrite overwrite;
};

// Each way from a reader to its writer passes one.
llvm::SmallVector<Cut, 16> cuts_for(llvm::ArrayRef<Overwrite> overwrites, llvm::Function &function,
                                    llvm::FunctionAnalysisManager &analyses);

struct Region {
    // It begins where this block does, which has no phis.
    llvm::BasicBlock *head;
    // What it overwrites, if that is why it begins; else something is done once in front of it.
    std::optional<Overwrite> overwrite;
};

struct Regions {
    // As they come in the function.
    llvm::SmallVector<Region, 8> regions;
    // What is done once, and may be what a region ends at.
    llvm::SmallVector<llvm::Instruction *, 8> ends;
};

// Makes a block of each place where a region begins; no region does one of the overwrites. A
// function that cannot be entered where a region begins stays as it is, and has none.
Regions split(llvm::Function &function, IsInside is_inside, llvm::ArrayRef<Overwrite> overwrites,
              llvm::FunctionAnalysisManager &analyses);

// The values that are used where a block begins or later, and were made before. Locals are always
// there.
class Live {
  public:
    explicit Live(llvm::Function &function);

    // In an order that is always the same.
    llvm::ArrayRef<llvm::Value *> at(const llvm::BasicBlock &block) const;

  private:
    llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<llvm::Value *, 8>> values;
};

} // namespace durumcc::ido
