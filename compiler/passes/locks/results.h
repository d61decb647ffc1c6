// What a way says of the result of a call that it has come from: whether a lock was taken, or
// whether setjmp has come back for the second time.
#pragma once

#include "llvm/IR/InstrTypes.h"

#include <optional>

namespace durumcc::locks {

// A call, and whether it has returned 0.
struct Outcome {
    const llvm::CallBase *call;
    bool is_zero;
};

// Nothing, if the way from the end of a block to a successor does not say so for the first time.
// Control has come from the call straight to there, and nothing between takes or releases another
// lock. So what is found out is found out once.
std::optional<Outcome> outcome_on(const llvm::Instruction &end, unsigned successor);

// Whether all that looks at the result are ends of blocks that outcome_on knows, with nothing done
// before. What else is done with a result may say something that nobody sees.
bool is_followed(const llvm::CallBase &call);

// Whether each way says whether it was 0, before anything is done.
bool is_decided(const llvm::CallBase &call);

} // namespace durumcc::locks
