#include "nvl/cursors.h"

#include "nvl/language.h"
#include "nvl/runtime.h"

#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace durumcc::nvl {

using namespace llvm;

Cursor::Cursor(Function &function, const Bytes &bytes, Instruction *behind,
               const DebugLoc &location)
    : bytes(bytes), behind(behind), location(location) {
    IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    auto *pointer = builder.getPtrTy(nvm_space);
    from = builder.CreateAlloca(pointer);
    to = builder.CreateAlloca(pointer);
    auto *none = ConstantPointerNull::get(pointer);
    builder.CreateStore(none, from);
    builder.CreateStore(none, to);
}

void Cursor::note(IRBuilderBase &builder) const {
    auto *pointer = builder.getPtrTy(nvm_space);
    auto *i64 = builder.getInt64Ty();
    Value *first = builder.CreateLoad(pointer, from), *last = builder.CreateLoad(pointer, to);
    Value *size =
        builder.CreateSub(builder.CreatePtrToInt(last, i64), builder.CreatePtrToInt(first, i64));
    Module &module = *behind->getModule();
    builder.CreateCall(runtime::declare(module, runtime::write_back), {first, size});
}

void Cursor::end(Instruction *before) const {
    IRBuilder<> builder(before);
    builder.SetCurrentDebugLocation(location);
    note(builder);
    // The loop may be entered again.
    auto *none = ConstantPointerNull::get(builder.getPtrTy(nvm_space));
    builder.CreateStore(none, from);
    builder.CreateStore(none, to);
}

void Cursor::follow() const {
    IRBuilder<> builder(behind);
    builder.SetCurrentDebugLocation(location);
    auto *pointer = builder.getPtrTy(nvm_space);
    Value *first = bytes.first(builder);
    Value *next = builder.CreatePtrAdd(first, bytes.size(builder));
    Value *last = builder.CreateLoad(pointer, to);
    // What is stored again and again is noted once.
    Value *is_within =
        builder.CreateAnd(builder.CreateICmpUGE(first, builder.CreateLoad(pointer, from)),
                          builder.CreateICmpULE(next, last));
    Value *goes_on = builder.CreateICmpEQ(first, last);
    Instruction *jumps = SplitBlockAndInsertIfThen(
        builder.CreateNot(builder.CreateOr(goes_on, is_within)), behind, false);
    builder.SetInsertPoint(jumps);
    builder.SetCurrentDebugLocation(location);
    note(builder);
    builder.CreateStore(first, from);
    builder.SetInsertPoint(behind);
    builder.SetCurrentDebugLocation(location);
    builder.CreateStore(builder.CreateSelect(is_within, last, next), to);
}

void Cursor::promote(Function &function, ArrayRef<Cursor> cursors) {
    SmallVector<AllocaInst *, 8> variables;
    for (const Cursor &cursor : cursors)
        variables.append({cursor.from, cursor.to});
    DominatorTree dominators(function);
    PromoteMemToReg(variables, dominators);
}

} // namespace durumcc::nvl
