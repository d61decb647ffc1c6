// Functions for inside and outside of transactions or sections.
#pragma once

#include "language.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"

namespace durumcc {

// How control comes to the begin of a function: outside of all levels, inside of one, or both.
enum class Entry { Unknown, Outside, Inside };

// An attribute of functions that nobody else calls inside of a level than callers of the module do.
constexpr const char called_outside[] = "durum-called-outside";

// An attribute of functions that only ask, and call the one version or the other.
constexpr const char dispatches[] = "durum-dispatches";

// How each function of the module is entered when it is done. `wants_two`: whether it pays to know
// in a function how it was entered.
llvm::DenseMap<llvm::Function *, Entry>
make_versions(llvm::Module &module, const Language &language, const Levels &levels,
              llvm::function_ref<bool(llvm::Function &)> wants_two);

// Whether a function stores in loops where only the way in which it was entered tells how.
bool asks_in_loops(llvm::Function &function, const Language &language,
                   const llvm::TargetLibraryInfo &library);

} // namespace durumcc
