#include "ido/twice.h"

#include "ido/early_reads.h"
#include "ido/regions.h"
#include "ido/sections.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// What was there at the begin of a local's life is what an earlier one had written.
void end_lifetimes(Function &function) {
    for (BasicBlock &block : function)
        for (Instruction &instruction : make_early_inc_range(block))
            if (instruction.isLifetimeStartOrEnd())
                instruction.eraseFromParent();
}

// All that passes from block to block is in slots then, so that a jump needs nothing else.
class Slots {
  public:
    explicit Slots(Function &function) : function(function) {
        SmallVector<PHINode *, 16> phis;
        for (BasicBlock &block : function)
            for (PHINode &phi : block.phis())
                phis.push_back(&phi);
        for (PHINode *phi : phis)
            DemotePHIToStack(phi, place());
    }

    void demote() {
        SmallVector<Instruction *, 32> passing;
        for (BasicBlock &block : function)
            for (Instruction &instruction : block)
                if (!isa<AllocaInst>(instruction) && instruction.isUsedOutsideOfBlock(&block))
                    passing.push_back(&instruction);
        for (Instruction *instruction : passing)
            slots[instruction] = DemoteRegToStack(*instruction, false, place());
    }

    // None for arguments, which are always there.
    AllocaInst *of(Value &value) const { return slots.lookup(&value); }

    void spoil(IRBuilderBase &builder) const {
        for (auto [value, slot] : slots) {
            const TypeSize size = *slot->getAllocationSize(function.getDataLayout());
            builder.CreateMemSet(slot, builder.getInt8(0xa5), size.getFixedValue(),
                                 slot->getAlign());
        }
    }

    AllocaInst *make(Type *type) { return IRBuilder<>(&*place()).CreateAlloca(type); }

    // Behind all allocas.
    BasicBlock::iterator place() const {
        return function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
    }

  private:
    Function &function;
    MapVector<Value *, AllocaInst *> slots;
};

// Nothing can be put in front of them.
bool is_of_begin(const Instruction &instruction) {
    const auto *local = dyn_cast<AllocaInst>(&instruction);
    return isa<PHINode, LandingPadInst>(instruction) || (local && local->isStaticAlloca());
}

// What is done once, and may be what a region ends at.
SmallVector<Instruction *, 16> ends_in(Function &function, IsInside is_inside) {
    SmallVector<Instruction *, 16> ends;
    auto is_end = [&](const Instruction &one) { return !is_inside(one) || !may_be_repeated(one); };
    for (BasicBlock &block : function)
        for (Instruction &instruction : block) {
            if (!is_end(instruction) || is_of_begin(instruction))
                continue;
            // The first of a block is reached from others.
            const Instruction *before = instruction.getPrevNode();
            if (!before || is_of_begin(*before) || !is_end(*before))
                ends.push_back(&instruction);
        }
    return ends;
}

class Doubler {
  public:
    Doubler(Function &function, ArrayRef<BasicBlock *> heads, ArrayRef<Instruction *> ends)
        : function(function), heads(heads), ends(ends), slots(function) {}

    void run() {
        SmallVector<SmallVector<Value *, 8>, 8> live_ins;
        // It goes on behind the end of a section as well.
        const Live live(function, [](const Instruction &) { return true; });
        for (const BasicBlock *head : heads)
            live_ins.emplace_back(live.at(*head));
        slots.demote();

        IRBuilder<> builder(&*slots.place());
        region = slots.make(builder.getInt32Ty());
        is_second = slots.make(builder.getInt1Ty());
        builder.CreateStore(builder.getInt32(0), region);
        builder.CreateStore(builder.getFalse(), is_second);
        make_again();
        for (Instruction *place : ends)
            end_at(*place);
        for (auto [i, head] : enumerate(heads))
            begin(i + 1, *head, live_ins[i]);
    }

  private:
    // Where a region that has come to its end for the first time begins again.
    void make_again() {
        LLVMContext &context = function.getContext();
        again = BasicBlock::Create(context, "again", &function);
        BasicBlock *none = BasicBlock::Create(context, "none", &function);
        new UnreachableInst(context, none);
        IRBuilder<> builder(again);
        builder.CreateStore(builder.getTrue(), is_second);
        // Whatever is no live-in is lost.
        slots.spoil(builder);
        Value *number = builder.CreateLoad(builder.getInt32Ty(), region);
        ways = builder.CreateSwitch(number, none, heads.size());
    }

    // A region that is under way in front of the place ends there. Gives the block that begins with
    // the place.
    BasicBlock &end_at(Instruction &place) {
        BasicBlock *before = place.getParent();
        BasicBlock *passed = SplitBlock(before, &place);
        BasicBlock *behind = SplitBlock(passed, &place);
        before->getTerminator()->eraseFromParent();
        IRBuilder<> builder(before);
        Value *is_any = builder.CreateIsNotNull(builder.CreateLoad(builder.getInt32Ty(), region));
        Value *is_first = builder.CreateNot(builder.CreateLoad(builder.getInt1Ty(), is_second));
        builder.CreateCondBr(builder.CreateAnd(is_any, is_first), again, passed);
        builder.SetInsertPoint(passed->getTerminator());
        builder.CreateStore(builder.getInt32(0), region);
        return *behind;
    }

    void begin(unsigned number, BasicBlock &head, ArrayRef<Value *> live_ins) {
        BasicBlock &here = end_at(head.front());
        BasicBlock *body = SplitBlock(&here, &here.front());
        BasicBlock *reload = BasicBlock::Create(function.getContext(), "reload", &function);
        IRBuilder<> saving(here.getTerminator());
        IRBuilder<> reloading(reload);
        for (Value *value : live_ins) {
            AllocaInst *slot = slots.of(*value);
            if (!slot)
                continue;
            Type *type = slot->getAllocatedType();
            AllocaInst *saved = slots.make(type);
            saving.CreateStore(saving.CreateLoad(type, slot), saved);
            reloading.CreateStore(reloading.CreateLoad(type, saved), slot);
        }
        saving.CreateStore(saving.getInt32(number), region);
        saving.CreateStore(saving.getFalse(), is_second);
        reloading.CreateBr(body);
        ways->addCase(saving.getInt32(number), reload);
    }

    Function &function;
    // Where regions begin.
    const ArrayRef<BasicBlock *> heads;
    const ArrayRef<Instruction *> ends;
    Slots slots;
    // The number of the region that is under way, or 0, and whether it is for the second time.
    AllocaInst *region = nullptr;
    AllocaInst *is_second = nullptr;
    BasicBlock *again = nullptr;
    SwitchInst *ways = nullptr;
};

} // namespace

std::optional<Twice> twice_named(StringRef name) {
    if (!name.consume_front("regions-twice"))
        return std::nullopt;
    Twice options;
    name.consume_front("<");
    name.consume_back(">");
    SmallVector<StringRef, 2> words;
    name.split(words, ';', -1, false);
    for (StringRef word : words) {
        if (word == "everywhere")
            options.is_everywhere = true;
        else if (!options.omitted.read(word))
            return std::nullopt;
    }
    return options;
}

void do_twice(Module &module, ModuleAnalysisManager &analyses, Twice options) {
    FunctionAnalysisManager &of_functions =
        analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    const locks::Held held(module);
    for (Function &function : module) {
        if (function.isDeclaration())
            continue;
        end_lifetimes(function);
        const Inside inside =
            options.is_everywhere ? Inside::everywhere(function) : Inside(function, held);
        if (!can_be_split(function))
            continue;
        read_early(function, inside, of_functions);
        const auto conflicts = conflicts_in(function, inside, of_functions, options.omitted);
        SmallVector<Instruction *, 16> begins;
        for (const Cut &cut : cuts_for(conflicts, function, of_functions))
            begins.push_back(cut.place);
        const SmallVector<Instruction *, 16> ends = ends_in(function, inside);
        make_blocks(function, begins);
        of_functions.invalidate(function, PreservedAnalyses::none());
        SmallVector<BasicBlock *, 16> heads;
        for (Instruction *begin : begins)
            heads.push_back(begin->getParent());
        if (!heads.empty())
            Doubler(function, heads, ends).run();
    }
}

} // namespace durumcc::ido
