#include "depths.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"

#include <algorithm>

namespace durumcc {
namespace {

using namespace llvm;

// The lower bound of a sum. One of -many means that there is none.
int lower(int bound, int change) {
    if (bound <= -Depth::many || change <= -Depth::many)
        return -Depth::many;
    return std::clamp(bound + change, -Depth::many, Depth::many);
}

} // namespace

Depth operator+(Depth depth, Depth change) {
    return {lower(depth.min, change.min), -lower(-depth.max, -change.max)};
}

Depth operator|(Depth one, Depth other) {
    return {std::min(one.min, other.min), std::max(one.max, other.max)};
}

std::optional<Depth> Depths::behind(const Instruction &instruction,
                                    std::optional<Depth> depth) const {
    if (!depth)
        return std::nullopt;
    std::optional<Depth> change = levels.change(instruction);
    if (!change)
        return std::nullopt;
    return *depth + *change;
}

Depths::Depths(const Function &function, const Levels &levels) : levels(levels) {
    SetVector<const BasicBlock *> to_do;
    to_do.insert(&function.getEntryBlock());
    begins[to_do.front()] = {};
    // A block comes again when its bounds have moved apart, and they are bounded.
    while (!to_do.empty()) {
        const BasicBlock *block = to_do.pop_back_val();
        std::optional<Depth> depth = begins[block];
        for (const Instruction &instruction : *block)
            depth = behind(instruction, depth);
        if (!depth)
            continue;
        const Instruction &end = *block->getTerminator();
        for (unsigned i = 0; i < end.getNumSuccessors(); i++) {
            std::optional<Depth> change = levels.change_to(end, i);
            if (!change)
                continue;
            const Depth there = *depth + *change;
            auto [place, is_new] = begins.try_emplace(end.getSuccessor(i), there);
            const Depth met = place->second | there;
            if (!is_new && met == place->second)
                continue;
            place->second = met;
            to_do.insert(end.getSuccessor(i));
        }
    }
}

std::optional<Depth> Depths::at_begin(const BasicBlock &block) const {
    auto found = begins.find(&block);
    return found == begins.end() ? std::nullopt : std::optional(found->second);
}

} // namespace durumcc
