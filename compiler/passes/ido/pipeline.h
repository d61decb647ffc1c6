// What happens to a module with sections that are to be durable, at which point of LLVM's pipeline.
#pragma once

#include "ido/regions.h"

#include <optional>

namespace durumcc::ido {

// Whether the passes have seen the module, which has no mark any more.
bool is_compiled(const llvm::Module &module);

// Before the optimizer.
void begin(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);

// When everything that could move a store has run.
void end(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);
void end_with(llvm::Module &module, llvm::ModuleAnalysisManager &analyses, Omitted omitted);

// ido-end<leave-out=N;one-turn>, or with less in the brackets. Nothing, if it is another name.
std::optional<Omitted> end_named(llvm::StringRef name);

} // namespace durumcc::ido
