// The mark of modules that a front end of NVL made (docs/reference/nvl-ir.md), and the options it
// carries.
#pragma once

#include "llvm/IR/Module.h"

namespace nvl {

// What the command line asked for, by the names of its options: `no_checks` is -fnvl-no-checks.
struct Options {
#define NVL_OPTION(member, option, bit, text) bool member = false;
#include "../options.def"
};

bool has_mark(const llvm::Module &module);
Options options_of(const llvm::Module &module);
// Takes the mark and the options away: the module has been transformed.
void remove_mark(llvm::Module &module);

// Takes away the lines that the driver made Clang keep, if nobody has asked for them by -g.
void strip_lines(llvm::Module &module);

} // namespace nvl
