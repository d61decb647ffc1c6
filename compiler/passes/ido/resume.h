// A second way into a function: where a crash has interrupted it (iDO, §III-C).
//
//   long f(long x) {                       long f(long x) {
//       ...                                    if (thread->region)
//                                                  goto one of the regions, with their words;
//       ...                                    ...
//                                              __durum_ido_record(thread, &regions[2], words);
//                                          region_3:
//                                              x = words[0];
//   }                                          ...
#pragma once

#include "ido/sites.h"

namespace durumcc::ido {

// The function has been instrumented. Its code gets an entry for each site. `words`: where the
// regions have their live-ins. It comes back early where no lock is held any more: the section has
// ended.
void make_resumable(llvm::Function &function, llvm::ArrayRef<Site> sites, const Inside &inside,
                    llvm::Value *thread, llvm::GlobalVariable &regions, llvm::AllocaInst &words);

// By which the runtime calls functions of this type where they have been interrupted:
//
//   void resume(const void *words, unsigned number, void *result, void *code)
//
// The code goes on where the region of that number begins, with these words of live-ins. `result`:
// what the call has returned, for a frame's region; where it returns itself, what the function
// returns.
llvm::Function *caller_of(const llvm::Function &function);

} // namespace durumcc::ido
