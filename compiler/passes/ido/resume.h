// A function that goes on where a crash has interrupted another one (iDO, §III-C).
#pragma once

#include "ido/sites.h"

namespace durumcc::ido {

// The function has been instrumented, and does not change any more.
//
//   void resume(const void *words, unsigned number, void *result)
//
// It goes on where the region of that number begins, with these words of live-ins. `result`: what
// the call has returned, for a frame's region; where it returns itself, what the function returns.
// It comes back early where no lock is held any more: the section has ended.
llvm::Function *make_resume(llvm::Function &function, llvm::ArrayRef<Site> sites,
                            const Inside &inside, llvm::Value *thread);

} // namespace durumcc::ido
