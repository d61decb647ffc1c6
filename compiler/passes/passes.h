// The passes, one file for each subject. plugin.cpp says when each of them runs, and
// docs/reference/nvl-ir.md why then. All of them work on modules with the mark only.
#pragma once

#include "mark.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/PassManager.h"

namespace nvl {

// How control comes to the begin of a function: outside of transactions, inside of one, or both.
enum class Entry { Unknown, Outside, Inside };

// transactions.cpp: what options leave out of transactions.
void simplify_transactions(llvm::Module &module, const Options &options);
// pointers.cpp: stores and loads of pointers, copies that may hold some.
void lower_pointers(llvm::Module &module, const Options &options);
// values.cpp: objects in NVM that are passed by value, and what leads out of the address space.
void copy_arguments(llvm::Module &module);
// library.cpp: functions of the C library that get pointers into NVM.
void adapt_library_calls(llvm::Module &module);
void adapt_sanitized(llvm::Module &module);
// jumps.cpp: what setjmp comes back to, and ways out of transactions that would commit.
void unwind_after_jumps(llvm::Module &module);
void refuse_exceptions(llvm::Module &module);
// checks.cpp: order and distance of pointers to different allocations.
void check_comparisons(llvm::Module &module);
void simplify_checks(llvm::Module &module, llvm::FunctionAnalysisManager &analyses);
// aliases.cpp: what NVM does not alias.
void forget_restrict(llvm::Module &module);
void tell_aliases(llvm::Module &module);
// versions.cpp: functions for inside and outside of transactions. How each function of the module
// is entered from then on.
llvm::DenseMap<llvm::Function *, Entry>
make_versions(llvm::Module &module,
              llvm::function_ref<const llvm::TargetLibraryInfo &(llvm::Function &)> library_of);
// durability.cpp: logs before plain stores, write-backs behind them.
void make_durable(llvm::Function &function, Entry entry, const Options &options,
                  const llvm::TargetLibraryInfo &library);
// effects.cpp: attributes that are not true any more.
void forget_effects(llvm::Module &module);
// locations.cpp: files and lines for the runtime's messages.
void pass_locations(llvm::Module &module);

} // namespace nvl
