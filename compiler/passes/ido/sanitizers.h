// What sanitizers of the front end have put into code before it is cut into regions. ASan and TSan
// come later, and find sections like any other code.
#pragma once

#include "llvm/IR/GlobalValue.h"
#include "llvm/IR/InstrTypes.h"

namespace durumcc::ido {

// A function or a variable of a sanitizer's: it tells what it has seen, and the section goes on or
// the program ends.
bool is_sanitizers(const llvm::GlobalValue &global);

// Whether the program does not go on behind the call.
bool never_returns(const llvm::CallBase &call);

} // namespace durumcc::ido
