// Calls of the threads' library become calls of the runtime.
#pragma once

#include "llvm/IR/Module.h"

namespace durumcc::ido {

void replace_lock_calls(llvm::Module &module);

} // namespace durumcc::ido
