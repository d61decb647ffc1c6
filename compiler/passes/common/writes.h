// What an instruction writes to durable memory.
#pragma once

#include "language.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instruction.h"

#include <optional>

namespace durumcc {

// Durable bytes, which a call of the runtime announces.
struct Bytes {
    llvm::Value *start = nullptr;
    // From `start` on to the first of them.
    int64_t offset = 0;
    // How many: a constant, or a value of the program.
    uint64_t count = 0;
    llvm::Value *length = nullptr;

    llvm::Value *first(llvm::IRBuilderBase &builder) const;
    llvm::Value *size(llvm::IRBuilderBase &builder) const;
};

struct Write {
    llvm::Instruction *instruction;
    Bytes bytes;
    // A function of the runtime, which announces what it writes by itself.
    bool is_announced = false;

    static Write of_length(llvm::Instruction &instruction, llvm::Value *start, llvm::Value *length);
};

// Plain stores and copies, and what the language's runtime announces by itself.
std::optional<Write> write_of(llvm::Instruction &instruction, const Language &language);

// Whether what is written behind the instruction may be logged before it, and what is written
// before it may become durable behind it: it hands over to the next one, and shows nothing to
// anybody else.
bool may_be_passed(const llvm::Instruction &instruction);

} // namespace durumcc
