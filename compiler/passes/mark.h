// The mark of modules that a front end of NVL made (docs/nvl-ir.md), and the options it carries.
#pragma once

#include "llvm/IR/Module.h"

namespace nvl {

struct Options {
    // Plain stores outside of transactions are not made durable: -fnvl-relaxed.
    bool is_relaxed = false;
    // Comparisons are not checked: -fnvl-no-checks.
    bool is_unchecked = false;
};

bool has_mark(const llvm::Module &module);
Options options_of(const llvm::Module &module);
// Takes the mark and the options away: the module has been transformed.
void remove_mark(llvm::Module &module);

// Takes away the lines that the driver made Clang keep, if nobody has asked for them by -g.
void strip_lines(llvm::Module &module);

} // namespace nvl
