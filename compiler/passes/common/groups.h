// Stores of a block that follow each other: what they write is announced together.
#pragma once

#include "writes.h"

namespace durumcc {

// Bytes without a gap that several stores write.
struct Span {
    // The first one of the stores.
    llvm::Instruction *first;
    Bytes bytes;
    bool is_announced = false;
};

struct Group {
    llvm::SmallVector<Span, 2> spans;
    // Of the stores.
    llvm::Instruction *first;
    llvm::Instruction *last;
};

// The writes, in the order of the function, in groups; each on its own if it is not optimized.
llvm::SmallVector<Group, 8> group(llvm::Function &function, llvm::ArrayRef<Write> writes);

} // namespace durumcc
