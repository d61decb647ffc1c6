#include "ido/regions.h"

#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// Static ones belong to the function, wherever they stand.
void gather_allocas(BasicBlock &entry) {
    Instruction *place = &*entry.getFirstNonPHIOrDbgOrAlloca();
    for (Instruction &instruction : make_early_inc_range(entry))
        if (const auto *alloca = dyn_cast<AllocaInst>(&instruction))
            if (alloca->isStaticAlloca() && place->comesBefore(&instruction))
                instruction.moveBefore(place);
}

} // namespace

bool can_be_split(const Function &function) {
    for (const BasicBlock &block : function) {
        if (isa<IndirectBrInst, CallBrInst>(block.getTerminator()) || block.hasAddressTaken())
            return false;
        for (const Instruction &instruction : block) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            const auto *local = dyn_cast<AllocaInst>(&instruction);
            if ((local && !local->isStaticAlloca()) ||
                (call && call->hasFnAttr(Attribute::ReturnsTwice)) ||
                instruction.getType()->isTokenTy() ||
                (instruction.isEHPad() && !isa<LandingPadInst>(instruction)))
                return false;
        }
    }
    return true;
}

void make_blocks(Function &function, ArrayRef<Instruction *> begins) {
    gather_allocas(function.getEntryBlock());
    for (Instruction *begin : begins)
        SplitBlock(begin->getParent(), begin);
}

} // namespace durumcc::ido
