//   memmove(to, from, n);                     copy = __durum_ido_locals(thread, n);
//                                             memcpy(copy, from, n);
//                                             memcpy(to, copy, n);
//                                             __durum_ido_leave(thread, copy);
#include "ido/moves.h"

#include "ido/runtime.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// So many bytes are a live-in of few words.
constexpr uint64_t few = 64;

void replace(MemMoveInst &move, Value *thread, AAResults &aliases) {
    IRBuilder<> builder(&move);
    Value *from = move.getRawSource(), *to = move.getRawDest(), *size = move.getLength();
    const MaybeAlign from_align = move.getSourceAlign(), to_align = move.getDestAlign();
    const auto *bytes = dyn_cast<ConstantInt>(size);
    if (bytes && bytes->isZero())
        return;
    if (bytes && bytes->getZExtValue() <= few) {
        Type *all = builder.getIntNTy(8 * bytes->getZExtValue());
        Value *value = builder.CreateAlignedLoad(all, from, from_align.valueOrOne());
        builder.CreateAlignedStore(value, to, to_align.valueOrOne());
        return;
    }
    if (aliases.isNoAlias(MemoryLocation::getForDest(&move), MemoryLocation::getForSource(&move))) {
        builder.CreateMemCpy(to, to_align, from, from_align, size);
        return;
    }
    Module &module = *move.getModule();
    Value *length = builder.CreateZExtOrTrunc(size, builder.getInt64Ty());
    Value *copy =
        builder.CreateCall(runtime::declare(module, runtime::locals), {thread, length}, "copy");
    builder.CreateMemCpy(copy, Align(8), from, from_align, size);
    builder.CreateMemCpy(to, to_align, copy, Align(8), size);
    builder.CreateCall(runtime::declare(module, runtime::leave), {thread, copy});
}

} // namespace

void replace_moves(Function &function, const Inside &inside, Value *thread,
                   FunctionAnalysisManager &analyses) {
    AAResults &aliases = analyses.getResult<AAManager>(function);
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
        auto *move = dyn_cast<MemMoveInst>(&instruction);
        // Whoever says volatile wants it as it is.
        if (!move || !inside(*move) || move->isVolatile())
            continue;
        replace(*move, thread, aliases);
        move->eraseFromParent();
    }
}

} // namespace durumcc::ido
