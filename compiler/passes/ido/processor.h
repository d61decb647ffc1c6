// What code needs of the processor beyond the base of its architecture. Code that completes
// sections says it, so that it is compared before the code is run (docs/format/code.md).
#pragma once

#include "llvm/IR/Module.h"

namespace durumcc::ido {

// Each function refers to the names of what it needs, in a section of their own: the linker keeps
// the names that functions refer to which it keeps, each once.
//
//   @__durum_feature.avx2 = linkonce_odr hidden constant [5 x i8] c"avx2\00", section
//   "durum_features", comdat define void @f() { call void asm sideeffect ".reloc ., BFD_RELOC_NONE,
//   ${0:c}", "i"(ptr @__durum_feature.avx2)
void tell_features(llvm::Module &module);

} // namespace durumcc::ido
