// Functions for inside and outside of transactions or sections.
#pragma once

#include "language.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"

namespace durumcc {

// How control comes to the begin of a function: outside of all levels, inside of one, or both.
enum class Entry { Unknown, Outside, Inside };

// How each function of the module is entered when it is done.
llvm::DenseMap<llvm::Function *, Entry>
make_versions(llvm::Module &module, const Language &language,
              llvm::function_ref<const llvm::TargetLibraryInfo &(llvm::Function &)> library_of);

} // namespace durumcc
