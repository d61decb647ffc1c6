// define void @f() {                        define void @f() {
//   %a = alloca [8 x i32]                     %t = call ptr @__durum_ido_thread()
//   ...                                       %base = call ptr @__durum_ido_locals(ptr %t, i64 64)
//                                             ...
//   ret void                                  call void @__durum_ido_leave(ptr %t, ptr %base)
// }                                           ret void
//                                           }
#include "ido/locals.h"

#include "ido/runtime.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// What writes back a line writes back no other thread's.
const Align line(64);

// A caller's stack does not last. What is written here becomes durable with the next record, before
// which nothing leads here: so it needs none of its own.
void copy_arguments(Function &function, Instruction &thread) {
    Module &module = *function.getParent();
    IRBuilder<> making(&function.getEntryBlock().front());
    IRBuilder<> copying(thread.getNextNode());
    for (Argument &argument : function.args()) {
        if (!argument.hasByValAttr())
            continue;
        Type *type = argument.getParamByValType();
        AllocaInst *copy = making.CreateAlloca(type);
        copy->setAlignment(std::max(copy->getAlign(), argument.getParamAlign().valueOrOne()));
        argument.replaceAllUsesWith(copy);
        copying.CreateCall(
            runtime::declare(module, runtime::copy_argument),
            {copy, &argument, copying.getInt64(module.getDataLayout().getTypeAllocSize(type))});
    }
}

// What was there at the begin of a local's life is nobody's, and is not in the way of another.
void end_lifetimes(Function &function) {
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
        if (instruction.isLifetimeStartOrEnd())
            instruction.eraseFromParent();
}

SmallVector<AllocaInst *, 8> locals_of(Function &function) {
    SmallVector<AllocaInst *, 8> locals;
    for (Instruction &instruction : function.getEntryBlock())
        if (auto *local = dyn_cast<AllocaInst>(&instruction))
            if (local->isStaticAlloca())
                locals.push_back(local);
    return locals;
}

void promote(Function &function, DominatorTree &dominators) {
    SmallVector<AllocaInst *, 8> promotable;
    for (AllocaInst *local : locals_of(function))
        if (isAllocaPromotable(local))
            promotable.push_back(local);
    PromoteMemToReg(promotable, dominators);
}

// At each place where it is used, so that a region has one live-in for all locals.
void replace(AllocaInst &local, Value &base, uint64_t offset) {
    while (!local.use_empty()) {
        Use &use = *local.use_begin();
        auto *user = cast<Instruction>(use.getUser());
        // A phi uses a value at the end of the block that it comes from, the same for each way from
        // there.
        if (auto *phi = dyn_cast<PHINode>(user)) {
            BasicBlock *from = phi->getIncomingBlock(use);
            IRBuilder<> builder(from->getTerminator());
            Value *place = runtime::at(builder, base, offset);
            for (unsigned i = 0; i < phi->getNumIncomingValues(); i++)
                if (phi->getIncomingBlock(i) == from)
                    phi->setIncomingValue(i, place);
            continue;
        }
        IRBuilder<> builder(user);
        use.set(runtime::at(builder, base, offset));
    }
    local.eraseFromParent();
}

} // namespace

void move_locals(Function &function, Value *thread, FunctionAnalysisManager &analyses) {
    end_lifetimes(function);
    copy_arguments(function, *cast<Instruction>(thread));
    promote(function, analyses.getResult<DominatorTreeAnalysis>(function));

    SmallVector<std::pair<AllocaInst *, uint64_t>, 8> places;
    uint64_t size = 0;
    const DataLayout &layout = function.getDataLayout();
    for (AllocaInst *local : locals_of(function)) {
        size = alignTo(size, std::min(local->getAlign(), line));
        places.push_back({local, size});
        size += local->getAllocationSize(layout)->getFixedValue();
    }
    if (size == 0)
        return;
    Module &module = *function.getParent();
    IRBuilder<> builder(cast<Instruction>(thread)->getNextNode());
    Value *base = builder.CreateCall(runtime::declare(module, runtime::locals),
                                     {thread, builder.getInt64(alignTo(size, line))}, "locals");
    for (auto [local, offset] : places)
        replace(*local, *base, offset);
    for (BasicBlock &block : function) {
        Instruction *end = block.getTerminator();
        if (!isa<ReturnInst, ResumeInst>(end))
            continue;
        builder.SetInsertPoint(end);
        builder.CreateCall(runtime::declare(module, runtime::leave), {thread, base});
    }
}

bool leads_to_locals(const Value &value) {
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(&value, objects, nullptr, 0);
    return any_of(objects, [](const Value *object) {
        const auto *instruction = dyn_cast<Instruction>(object);
        return instruction && runtime::called_by(*instruction) == runtime::locals;
    });
}

void forget_locals(Function &function) {
    for (Instruction &instruction : instructions(function))
        if (runtime::called_by(instruction) == runtime::locals)
            cast<CallBase>(instruction)
                .setCalledFunction(runtime::declare(*function.getParent(), runtime::other_locals));
}

} // namespace durumcc::ido
