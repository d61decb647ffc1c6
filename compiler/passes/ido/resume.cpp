#include "ido/resume.h"

#include "ido/instrument.h"
#include "ido/runtime.h"
#include "locks/calls.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

class Resumer {
  public:
    Resumer(Function &function, ArrayRef<Site> sites, const Inside &inside)
        : module(*function.getParent()), function(function), sites(sites), inside(inside) {}

    Function *make(Value *of_thread) {
        clone_function();
        ask_again(of_thread);
        IRBuilder<> builder(entry);
        BasicBlock *none = BasicBlock::Create(module.getContext(), "none", clone);
        new UnreachableInst(module.getContext(), none);
        SwitchInst *ways = builder.CreateSwitch(clone->getArg(1), none, sites.size());
        make_slots();
        for (const auto &[i, site] : enumerate(sites))
            ways->addCase(builder.getInt32(i + 1), reload(site));
        end_sections();
        return_results();
        removeUnreachableBlocks(*clone);
        DominatorTree dominators(*clone);
        SmallVector<AllocaInst *, 16> promotable;
        for (Instruction &instruction : *entry)
            if (auto *slot = dyn_cast<AllocaInst>(&instruction))
                if (isAllocaPromotable(slot))
                    promotable.push_back(slot);
        PromoteMemToReg(promotable, dominators);
        return clone;
    }

  private:
    template <typename T> T *in_clone(const T *value) const { return cast<T>(map.lookup(value)); }

    // The blocks of the function, behind an entry of its own, from where they are not reached yet.
    void clone_function() {
        LLVMContext &context = module.getContext();
        Type *pointer = PointerType::get(context, 0);
        auto *type = FunctionType::get(Type::getVoidTy(context),
                                       {pointer, Type::getInt32Ty(context), pointer}, false);
        clone = Function::Create(type, GlobalValue::InternalLinkage, function.getAddressSpace(),
                                 function.getName() + ".resume", &module);
        entry = BasicBlock::Create(context, "", clone);
        BasicBlock *before = BasicBlock::Create(context, "", clone);
        IRBuilder<> builder(before);
        for (Argument &argument : function.args())
            map[&argument] = builder.CreateFreeze(PoisonValue::get(argument.getType()));
        SmallVector<ReturnInst *, 4> returns;
        CloneFunctionInto(clone, &function, map, CloneFunctionChangeType::LocalChangesOnly,
                          returns);
        builder.CreateBr(cast<BasicBlock>(map[&function.getEntryBlock()]));
        clone->setAttributes(
            AttributeList::get(context, AttributeList::FunctionIndex,
                               AttrBuilder(context, function.getAttributes().getFnAttrs())));
        clone->setCallingConv(CallingConv::C);
        clone->setVisibility(GlobalValue::DefaultVisibility);
        clone->setDLLStorageClass(GlobalValue::DefaultStorageClass);
        clone->setDSOLocal(true);
        clone->setComdat(nullptr);
        clone->setPrefixData(nullptr);
        clone->setPrologueData(nullptr);
    }

    // What is no live-in: the thread, and where global variables are.
    void ask_again(Value *of_thread) {
        IRBuilder<> builder(entry);
        thread = builder.CreateCall(runtime::declare(module, runtime::thread), {});
        DenseMap<Value *, Value *> globals;
        for (Instruction &instruction : make_early_inc_range(instructions(function))) {
            if (!runtime::is_asked_again(instruction))
                continue;
            auto *cloned = cast<CallBase>(map.lookup(&instruction));
            Value *&again = &instruction == of_thread ? thread : globals[cloned->getArgOperand(0)];
            if (!again)
                again = builder.Insert(cloned->clone());
            cloned->replaceAllUsesWith(again);
            cloned->eraseFromParent();
        }
    }

    // What a region needs is put where its code finds it, and where a way that came from elsewhere
    // has put it.
    void make_slots() {
        auto make = [&](const Value *value) {
            if (slots.contains(value))
                return;
            auto *cloned = cast<Instruction>(map.lookup(value));
            // A result that nobody uses is live nowhere.
            slots[value] =
                cloned->use_empty()
                    ? nullptr
                    : DemoteRegToStack(*cloned, false, entry->getTerminator()->getIterator());
        };
        for (const Site &site : sites) {
            for (const Value *value : site.live_ins)
                make(value);
            if (site.kind == Site::Return && !site.place->getType()->isVoidTy())
                make(site.place);
        }
    }

    BasicBlock *reload(const Site &site) {
        BasicBlock *block = BasicBlock::Create(module.getContext(), "resume", clone);
        IRBuilder<> builder(block);
        uint64_t offset = 0;
        for (const Value *value : site.live_ins) {
            Value *place = builder.CreatePtrAdd(clone->getArg(0), builder.getInt64(offset));
            put(value, place, builder);
            offset += size_in_words(*value);
        }
        if (site.kind == Site::Return && !site.place->getType()->isVoidTy())
            put(site.place, clone->getArg(2), builder);
        builder.CreateBr(in_clone(site.head));
        return block;
    }

    void put(const Value *value, Value *place, IRBuilder<> &builder) {
        if (AllocaInst *slot = slots.lookup(value))
            builder.CreateStore(builder.CreateAlignedLoad(value->getType(), place, Align(8)), slot);
    }

    // Behind the last release there is nothing to complete.
    void end_sections() {
        for (const Instruction &instruction : instructions(function)) {
            std::optional<locks::Action> action = locks::action_of(instruction);
            if (!inside(instruction) || !action)
                continue;
            const bool is_release =
                action == locks::Action::Release || action == locks::Action::End;
            if (is_release || action == locks::Action::Wait)
                end_behind(*in_clone(cast<CallBase>(&instruction)));
        }
    }

    void end_behind(CallBase &call) {
        Instruction *next = isa<InvokeInst>(call)
                                ? &*cast<InvokeInst>(call).getNormalDest()->getFirstInsertionPt()
                                : call.getNextNode();
        IRBuilder<> builder(next);
        Value *is_outside =
            builder.CreateICmpEQ(runtime::depth(builder, thread), builder.getInt32(0));
        Instruction *end = SplitBlockAndInsertIfThen(is_outside, next, true);
        IRBuilder<>(end).CreateRetVoid();
        end->eraseFromParent();
    }

    void return_results() {
        for (BasicBlock &block : *clone) {
            auto *end = dyn_cast<ReturnInst>(block.getTerminator());
            if (!end || !end->getReturnValue())
                continue;
            IRBuilder<> builder(end);
            builder.CreateAlignedStore(end->getReturnValue(), clone->getArg(2), Align(8));
            builder.CreateRetVoid();
            end->eraseFromParent();
        }
    }

    Module &module;
    Function &function;
    const ArrayRef<Site> sites;
    const Inside &inside;
    Function *clone = nullptr;
    BasicBlock *entry = nullptr;
    Value *thread = nullptr;
    ValueToValueMapTy map;
    // Null for what has no use.
    MapVector<const Value *, AllocaInst *> slots;
};

} // namespace

Function *make_resume(Function &function, ArrayRef<Site> sites, const Inside &inside,
                      Value *thread) {
    return Resumer(function, sites, inside).make(thread);
}

} // namespace durumcc::ido
