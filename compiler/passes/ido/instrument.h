// Makes the sections of a function tell the runtime how they go on after a crash.
#pragma once

#include "ido/sites.h"

namespace durumcc::ido {

// The table of a function's regions, an entry for each site, and whatever else the runtime has to
// know of them. What is in it is known in the end.
llvm::GlobalVariable *declare_regions(llvm::Function &function, size_t count);
void define_regions(const llvm::Function &function, llvm::GlobalVariable &table,
                    llvm::ArrayRef<Site> sites, uint64_t hash);

// Tells the runtime what is stored in sections. Stores of a block that follow each other are told
// of together.
void announce_stores(llvm::Function &function, const Inside &inside, llvm::Value *thread);

// Puts records and frames into the function, and gives the place where the live-ins of a region are
// when its block begins.
llvm::AllocaInst *instrument(llvm::Function &function, llvm::ArrayRef<Site> sites,
                             llvm::Value *thread, llvm::GlobalVariable &table);

} // namespace durumcc::ido
