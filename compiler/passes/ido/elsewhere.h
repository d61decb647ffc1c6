// Memory that does not last, in sections: what is read there behind a record is gone when the
// section goes on, and what is written there then has no place.
#pragma once

#include "ido/sites.h"

namespace durumcc::ido {

// Before records are there.
void ask_for_memory(llvm::Function &function, llvm::ArrayRef<Site> sites, const Inside &inside,
                    llvm::Value *thread);

// When all functions ask.
void define_asking(llvm::Module &module);

} // namespace durumcc::ido
