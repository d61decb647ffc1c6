// A second way into a function: where a crash has interrupted it (iDO, §III-C).
//
//   long f(long x) {                          long f(long x) {
//       ...                                       if (thread->region)
//                                                     x = thread->words[0], goto one of the
//                                                     regions;
//   }                                             ...
//                                             }
//                                             void f.resume(words, region, result)
#pragma once

#include "ido/sites.h"

namespace durumcc::ido {

// The function has been instrumented. Its code gets an entry for each site, and a function by which
// the runtime calls it:
//
//   void resume(const void *words, unsigned number, void *result)
//
// It goes on where the region of that number begins, with these words of live-ins. `result`: what
// the call has returned, for a frame's region; where it returns itself, what the function returns.
// It comes back early where no lock is held any more: the section has ended.
llvm::Function *make_resume(llvm::Function &function, llvm::ArrayRef<Site> sites,
                            const Inside &inside, llvm::Value *thread);

} // namespace durumcc::ido
