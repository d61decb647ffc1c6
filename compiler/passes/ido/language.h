// Lock-based C and C++ whose sections are durable (-fido).
#pragma once

#include "common/language.h"

namespace durumcc::ido {

extern const Language &language;

// As the program calls it, if it has two versions.
llvm::StringRef name_of(const llvm::Function &function);

} // namespace durumcc::ido
