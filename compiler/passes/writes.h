// What an instruction writes to NVM.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instruction.h"

#include <optional>

namespace nvl {

// Bytes in NVM, which a call of the runtime announces.
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
};

// Plain stores and copies; nothing for stores of pointers, which are durable by themselves.
std::optional<Write> write_of(llvm::Instruction &instruction);

// Whether what is written behind the instruction may be logged before it, and what is written
// before it may become durable behind it: it hands over to the next one, and shows nothing to
// anybody else.
bool may_be_passed(const llvm::Instruction &instruction);

} // namespace nvl
