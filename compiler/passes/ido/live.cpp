#include "ido/regions.h"

#include "ido/runtime.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"

namespace durumcc::ido {

using namespace llvm;

Live::Live(Function &function, IsInside is_inside) {
    auto spread = [&](Value &value, const BasicBlock *made_in) {
        SmallPtrSet<const BasicBlock *, 16> seen;
        SmallVector<const BasicBlock *, 16> to_do;
        auto come = [&](const BasicBlock *block) {
            if (block == made_in || !is_inside(*block->getFirstNonPHI()) ||
                !seen.insert(block).second)
                return;
            values[block].push_back(&value);
            to_do.push_back(block);
        };
        for (const Use &use : value.uses()) {
            const auto *user = cast<Instruction>(use.getUser());
            // A phi uses a value at the end of the block that it comes from.
            const auto *phi = dyn_cast<PHINode>(user);
            come(phi ? phi->getIncomingBlock(use) : user->getParent());
        }
        while (!to_do.empty())
            for (const BasicBlock *before : predecessors(to_do.pop_back_val()))
                come(before);
    };
    for (Argument &argument : function.args())
        spread(argument, nullptr);
    for (BasicBlock &block : function)
        for (Instruction &instruction : block)
            if (!isa<AllocaInst>(instruction) && !runtime::is_asked_again(instruction))
                spread(instruction, &block);
}

ArrayRef<Value *> Live::at(const BasicBlock &block) const {
    auto found = values.find(&block);
    return found == values.end() ? ArrayRef<Value *>() : ArrayRef<Value *>(found->second);
}

} // namespace durumcc::ido
