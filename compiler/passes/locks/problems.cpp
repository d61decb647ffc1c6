#include "locks/problems.h"

#include "locks/calls.h"

namespace durumcc::locks {

using namespace llvm;

SmallVector<Problem, 4> problems_in(const Function &function, const Held &held) {
    SmallVector<Problem, 4> problems;
    const Depth entry = held.entry(function);
    const Depths depths(function, held);
    depths.each(function, [&](const Instruction &instruction, std::optional<Depth> depth) {
        std::optional<Action> action = action_of(instruction);
        if (!depth || !action)
            return;
        const Depth here = entry + *depth;
        const auto &call = cast<CallBase>(instruction);
        if ((action == Action::Release || action == Action::End) && here.max <= 0)
            problems.push_back({&call, Kind::Release});
        if (action == Action::Wait && here.max <= 0)
            problems.push_back({&call, Kind::WaitWithout});
        if (action == Action::Wait && here.min > 1)
            problems.push_back({&call, Kind::Wait});
    });
    return problems;
}

} // namespace durumcc::locks
