// What the passes have to be told about a language whose stores are durable.
#pragma once

#include "depths.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instruction.h"

#include <optional>

namespace durumcc {

struct Write;

// It says of transactions what opens and closes them, as far as an instruction by itself tells.
class Language : public Levels {
  public:
    // What the names begin with that modules carry and the runtime has: "__nvl_".
    virtual llvm::StringRef prefix() const = 0;

    // Whether the pointer may lead to what is durable.
    virtual bool is_durable(const llvm::Value *pointer) const = 0;

    // Whether a level is open where the code runs that is built.
    virtual llvm::Value *is_inside(llvm::IRBuilderBase &builder) const = 0;

    // What a function of the runtime writes that is called, if it announces that by itself.
    virtual std::optional<Write> announced(llvm::Instruction &instruction) const = 0;

    // Whether it calls a function of the runtime's that has another form, which is told file and
    // line.
    virtual bool has_location(const llvm::Instruction &instruction) const = 0;

    // What the names of functions that become two end with: for outside of all levels, and inside.
    virtual llvm::StringRef suffix_outside() const = 0;
    virtual llvm::StringRef suffix_inside() const = 0;

  protected:
    ~Language() = default;
};

} // namespace durumcc
