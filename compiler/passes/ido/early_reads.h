// Reads of what is overwritten later come in front of the stores that are in between: then one
// region does all of them, and needs what was read as live-ins.
//
//   a->count++;                               one = a->count, other = b->count;
//   b->count++;                               ---- one region instead of two
//                                             a->count = one + 1;
//                                             b->count = other + 1;
#pragma once

#include "ido/regions.h"

namespace durumcc::ido {

void read_early(llvm::Function &function, IsInside is_inside,
                llvm::FunctionAnalysisManager &analyses);

} // namespace durumcc::ido
