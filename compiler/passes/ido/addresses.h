// What sections may point to in the program: functions, constants, locks. A pointer to these is
// recorded by a name that lasts and a distance, as the code that completes sections has them
// elsewhere (docs/reference/ido-ir.md).
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/Function.h"

namespace durumcc::ido {

// Enters what these functions refer to. Constants that only the module knows get a byte behind
// them, and bytes in front: else a pointer to the end of one could be one to the begin of another.
//
//   @.str = private constant { [1 x i8], [3 x i8], [1 x i8] } { [1 x i8] zeroinitializer, [3 x i8]
//   c"%d\00", ... }
//   @__durum_ido_addresses = private constant [...] [{ ptr, i64, i64 } { ptr getelementptr (...,
//   ptr @.str, 0, 1), 4, name }]
void tell_addresses(llvm::Module &module, llvm::ArrayRef<llvm::Function *> functions);

} // namespace durumcc::ido
