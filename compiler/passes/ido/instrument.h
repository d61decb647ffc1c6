// Makes the sections of a function tell the runtime how they go on after a crash.
#pragma once

#include "ido/sites.h"

namespace durumcc::ido {

// The table of a function's regions, an entry for each site, and whatever else the runtime has to
// know of them. What is in it is known in the end.
llvm::GlobalVariable *declare_regions(llvm::Function &function, size_t count);
void define_regions(llvm::GlobalVariable &table, llvm::ArrayRef<Site> sites, uint64_t hash);

// Puts records, frames, and announcements of stores into the function.
void instrument(llvm::Function &function, llvm::ArrayRef<Site> sites, const Inside &inside,
                llvm::Value *thread, llvm::GlobalVariable &table);

} // namespace durumcc::ido
