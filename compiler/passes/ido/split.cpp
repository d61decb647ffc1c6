#include "ido/regions.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// What blocks cannot be cut out of, or is entered in ways that nobody knows.
bool can_be_split(const Function &function) {
    for (const BasicBlock &block : function) {
        if (isa<IndirectBrInst, CallBrInst>(block.getTerminator()) || block.hasAddressTaken())
            return false;
        for (const Instruction &instruction : block) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            if ((call && call->hasFnAttr(Attribute::ReturnsTwice)) ||
                instruction.getType()->isTokenTy() ||
                (instruction.isEHPad() && !isa<LandingPadInst>(instruction)))
                return false;
        }
    }
    return true;
}

// Static ones belong to the function, wherever they stand.
void gather_allocas(BasicBlock &entry) {
    Instruction *place = &*entry.getFirstNonPHIOrDbgOrAlloca();
    for (Instruction &instruction : make_early_inc_range(entry))
        if (const auto *alloca = dyn_cast<AllocaInst>(&instruction))
            if (alloca->isStaticAlloca() && place->comesBefore(&instruction))
                instruction.moveBefore(place);
}

class Splitter {
  public:
    Splitter(Function &function, IsInside is_inside, FunctionAnalysisManager &analyses)
        : function(function), is_inside(is_inside), analyses(analyses) {}

    Regions split(ArrayRef<Overwrite> overwrites) {
        for (const Cut &cut : cuts_for(overwrites, function, analyses))
            begins.insert({cut.place, cut.overwrite});
        gather_allocas(function.getEntryBlock());
        add_begin(*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        Regions found;
        for (BasicBlock &block : function)
            for (Instruction &instruction : block)
                if (!is_of_region(instruction)) {
                    add_begins_behind(instruction);
                    if (may_end_at(instruction))
                        found.ends.push_back(&instruction);
                }
        DenseMap<const BasicBlock *, std::optional<Overwrite>> heads;
        for (const auto &[place, overwrite] : begins)
            heads[SplitBlock(place->getParent(), place)] = overwrite;
        for (BasicBlock &block : function)
            if (auto head = heads.find(&block); head != heads.end())
                found.regions.push_back({&block, head->second});
        analyses.invalidate(function, PreservedAnalyses::none());
        return found;
    }

  private:
    bool is_of_region(const Instruction &instruction) const {
        return is_inside(instruction) && may_be_repeated(instruction);
    }

    // Nothing is done where a place that is done once follows on another.
    void add_begin(Instruction &place) {
        if (is_of_region(place))
            begins.insert({&place, std::nullopt});
    }

    void add_begins_behind(Instruction &instruction) {
        if (!instruction.isTerminator() && !is_of_begin(*instruction.getNextNode()))
            return add_begin(*instruction.getNextNode());
        if (!isa<InvokeInst>(instruction))
            return;
        for (BasicBlock *next : successors(&instruction))
            add_begin(*next->getFirstInsertionPt());
    }

    // The first of a block is reached from others.
    bool may_end_at(const Instruction &instruction) const {
        if (is_of_begin(instruction))
            return false;
        const Instruction *before = instruction.getPrevNode();
        return !before || is_of_begin(*before) || is_of_region(*before);
    }

    // Nothing can be put in front of them.
    static bool is_of_begin(const Instruction &instruction) {
        const auto *local = dyn_cast<AllocaInst>(&instruction);
        return isa<PHINode, LandingPadInst>(instruction) || (local && local->isStaticAlloca());
    }

    Function &function;
    const IsInside is_inside;
    FunctionAnalysisManager &analyses;
    MapVector<Instruction *, std::optional<Overwrite>> begins;
};

} // namespace

Regions split(Function &function, IsInside is_inside, ArrayRef<Overwrite> overwrites,
              FunctionAnalysisManager &analyses) {
    if (!can_be_split(function))
        return {};
    return Splitter(function, is_inside, analyses).split(overwrites);
}

} // namespace durumcc::ido
