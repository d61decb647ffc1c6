// The runtime's functions (docs/reference/nvl-runtime.md).
#pragma once

#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace durumcc::nvl::runtime {

// Names without `_at`.
constexpr const char store_ptr[] = "__nvl_store_ptr";
constexpr const char store_weak[] = "__nvl_store_weak";
constexpr const char load_weak[] = "__nvl_load_weak";
constexpr const char copy[] = "__nvl_copy";
constexpr const char fill[] = "__nvl_fill";
constexpr const char write_back[] = "__nvl_write_back";
constexpr const char persist[] = "__nvl_persist";
constexpr const char log[] = "__nvl_log";
constexpr const char check_same[] = "__nvl_check_same";
constexpr const char alloc[] = "__nvl_alloc";
constexpr const char alloc_pinned[] = "__nvl_alloc_pinned";
constexpr const char tx_begin[] = "__nvl_tx_begin";
constexpr const char tx_range[] = "__nvl_tx_range";
constexpr const char tx_end[] = "__nvl_tx_end";
constexpr const char tx_unwind[] = "__nvl_tx_unwind";
constexpr const char tx_depth[] = "__nvl_tx_depth";

// Declares a function that the passes call; not one that only front ends call.
llvm::FunctionCallee declare(llvm::Module &module, llvm::StringRef name);

// The name of the runtime's function that is called, without `_at`, or nothing.
llvm::StringRef called(const llvm::Instruction &instruction);

} // namespace durumcc::nvl::runtime
