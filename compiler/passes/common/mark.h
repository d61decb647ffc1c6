// The mark of modules that are written in a language whose stores are durable, and the options that
// they carry (docs/reference/nvl-ir.md).
#pragma once

#include "language.h"

#include "llvm/IR/Module.h"

namespace durumcc {

bool has_mark(const llvm::Module &module, const Language &language);

// The options of the command line, a bit for each (compiler/options.def).
uint64_t option_bits(const llvm::Module &module, const Language &language);

// Takes the mark and the options away: the module has been transformed.
void remove_mark(llvm::Module &module, const Language &language);

// Takes away the lines that the driver made Clang keep, if nobody has asked for them by -g.
void strip_lines(llvm::Module &module);

} // namespace durumcc
