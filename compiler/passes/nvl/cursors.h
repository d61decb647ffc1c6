// Stores of a loop outside of transactions that cannot be told ahead: those without a gap are noted
// as one range, when it has ended.
//
//   call @__nvl_write_back(%p, 8)
//
// becomes
//
//   if %p is not %to: call @__nvl_write_back(%from, %to - %from), %from = %p
//   %to = %p + 8
//
// and once more behind the loop, before the fence.
//
// So a line is mostly not written back as long as the loop may store to it: such a store would wait
// until the line has left. It happens where thousands of ranges were noted, which become durable in
// between, and where two cursors with gaps share a line.
#pragma once

#include "common/writes.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

namespace durumcc::nvl {

// A place in a loop that stores, and what it has stored since it noted something.
class Cursor {
  public:
    // `behind` is where the bytes have been stored.
    Cursor(llvm::Function &function, const Bytes &bytes, llvm::Instruction *behind,
           const llvm::DebugLoc &location);

    // Notes the range that is open: where the loop has ended, before anything becomes durable.
    void end(llvm::Instruction *before) const;

    // Puts the cursor into the loop. Makes blocks.
    void follow() const;

    // Makes registers of the cursors' variables.
    static void promote(llvm::Function &function, llvm::ArrayRef<Cursor> cursors);

  private:
    void note(llvm::IRBuilderBase &builder) const;

    Bytes bytes;
    llvm::Instruction *behind;
    llvm::DebugLoc location;
    // Variables: where the range begins, and where it ends.
    llvm::AllocaInst *from;
    llvm::AllocaInst *to;
};

} // namespace durumcc::nvl
