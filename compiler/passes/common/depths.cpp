#include "depths.h"

#include "llvm/IR/CFG.h"

namespace durumcc {

using namespace llvm;

std::optional<int> Depths::behind(const Instruction &instruction, std::optional<int> depth) const {
    if (depth)
        *depth += language.opens(instruction);
    return depth;
}

Depths::Depths(const Function &function, const Language &language) : language(language) {
    SmallVector<const BasicBlock *, 16> to_do{&function.getEntryBlock()};
    begins[to_do.front()] = 0;
    // A block comes again only when its number turns out to be none, so at most twice.
    while (!to_do.empty()) {
        const BasicBlock *block = to_do.pop_back_val();
        std::optional<int> depth = begins[block];
        for (const Instruction &instruction : *block)
            depth = behind(instruction, depth);
        for (const BasicBlock *next : successors(block)) {
            auto [place, is_new] = begins.try_emplace(next, depth);
            if (is_new) {
                to_do.push_back(next);
            } else if (place->second && place->second != depth) {
                place->second = std::nullopt;
                to_do.push_back(next);
            }
        }
    }
}

std::optional<int> Depths::at_begin(const BasicBlock &block) const {
    auto found = begins.find(&block);
    // Nothing leads to other blocks.
    return found == begins.end() ? 0 : found->second;
}

} // namespace durumcc
