// Files and lines for the runtime's messages.
#pragma once

#include "language.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"

#include <string>

namespace durumcc {

// As it was named on the command line: Clang splits absolute names in two.
std::string file_name(const llvm::DIFile &file);

// When all calls of the runtime are there.
void pass_locations(llvm::Module &module, const Language &language);

} // namespace durumcc
