// The passes of NVL-C, one file for each subject. pipeline.cpp says in which order they run, and
// docs/reference/nvl-ir.md why then.
#pragma once

#include "common/versions.h"
#include "nvl/language.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/PassManager.h"

namespace durumcc::nvl {

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
// durability.cpp: logs before plain stores, write-backs behind them.
void make_durable(llvm::Function &function, Entry entry, const Options &options,
                  const llvm::TargetLibraryInfo &library);

} // namespace durumcc::nvl
