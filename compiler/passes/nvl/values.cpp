// An object in NVM that is passed by value: Clang hands its address over, cast to space 0, because
// the call copies it. Here it is copied before the call, and so no cast is left: what the optimizer
// is told about NVM (aliases.cpp) has no exception.
//
//   call void @f(ptr byval(%struct.s) (addrspacecast ptr addrspace(1) %p to ptr))
//   call void @llvm.memcpy.p0.p1.i64(ptr %copy, ptr addrspace(1) %p, i64 64)
//   call void @f(ptr byval(%struct.s) %copy)
#include "nvl/language.h"
#include "nvl/passes.h"
#include "nvl/runtime.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

// Clang 19 writes some of these casts as bitcasts.
bool leaves_nvm(const Value *value) {
    const auto *cast = dyn_cast<Operator>(value);
    return cast &&
           (cast->getOpcode() == Instruction::AddrSpaceCast ||
            cast->getOpcode() == Instruction::BitCast) &&
           is_nvm(cast->getOperand(0)) && cast->getType()->isPointerTy() && !is_nvm(cast);
}

// What is no pointer into NVM becomes one.
bool enters_nvm(const Instruction &instruction) {
    const auto *cast = dyn_cast<AddrSpaceCastInst>(&instruction);
    return cast && is_nvm(cast) && !is_nvm(cast->getPointerOperand());
}

void copy_arguments(CallBase &call) {
    for (unsigned i = 0; i < call.arg_size(); i++) {
        Value *argument = call.getArgOperand(i);
        if (!call.isByValArgument(i) || !leaves_nvm(argument))
            continue;
        Type *type = call.getParamByValType(i);
        const DataLayout &layout = call.getModule()->getDataLayout();
        Align align = call.getParamAlign(i).value_or(layout.getABITypeAlign(type));
        IRBuilder<> entry(&*call.getFunction()->getEntryBlock().getFirstInsertionPt());
        AllocaInst *copy = entry.CreateAlloca(type);
        copy->setAlignment(align);
        IRBuilder<> builder(&call);
        builder.CreateMemCpy(copy, align, cast<Operator>(argument)->getOperand(0), align,
                             layout.getTypeAllocSize(type));
        call.setArgOperand(i, copy);
    }
}

constexpr char changed_elsewhere[] =
    "an object in NVM is changed by a library function here, such as that for an atomic operation "
    "of its size: what it writes would not be durable [nvl-library]";
constexpr char copied_elsewhere[] =
    "a copy in volatile memory takes the place of an object in NVM here, such as the one that an "
    "OpenMP reduction gives each thread: what is written to it is not NVM [nvl-openmp]";

} // namespace

void copy_arguments(Module &module) {
    for (Function &function : module) {
        SmallVector<Instruction *, 4> casts;
        for (Instruction &instruction : instructions(function)) {
            if (auto *call = dyn_cast<CallBase>(&instruction))
                copy_arguments(*call);
            if (leaves_nvm(&instruction))
                casts.push_back(&instruction);
            if (enters_nvm(instruction))
                module.getContext().emitError(&instruction, copied_elsewhere);
        }
        for (Instruction *cast : casts) {
            if (cast->use_empty())
                cast->eraseFromParent();
            else
                module.getContext().emitError(cast, changed_elsewhere);
        }
    }
}

} // namespace durumcc::nvl
