// -fdurable-report: what becomes of the sections of a file, in lines for people and for programs.
#pragma once

#include "ido/sites.h"

namespace durumcc::ido {

// An allocation of which the heap does not know what it holds.
void report_untyped(const llvm::CallBase &call, llvm::StringRef reason);

// Why a region begins there.
std::string reason_in_report(const Conflict &conflict);

// When the regions of a function and their live-ins are known.
void report_regions(llvm::Function &function, llvm::ArrayRef<Site> sites, const Inside &inside);

} // namespace durumcc::ido
