// What an instruction writes to NVM.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instruction.h"

#include <optional>

namespace nvl {

struct Write {
    llvm::Instruction *instruction;
    llvm::Value *start;
    // In bytes: a constant, or a value of the program.
    uint64_t bytes = 0;
    llvm::Value *length = nullptr;
    // A function of the runtime, which announces what it writes by itself.
    bool is_announced = false;

    llvm::Value *size(llvm::IRBuilder<> &builder) const;
};

// Plain stores and copies; nothing for stores of pointers, which are durable by themselves.
std::optional<Write> write_of(llvm::Instruction &instruction);

} // namespace nvl
