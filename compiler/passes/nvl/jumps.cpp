// Where setjmp returns for the second time, a jump may have left transactions. The runtime rolls
// them back.
//
//   %depth = load i32, ptr @__nvl_tx_depth()
//   %r = call i32 @_setjmp(ptr %buffer)
//   if (%r != 0) call void @__nvl_tx_unwind(i32 %depth)
//
// A thread that is cancelled in code that is compiled with -fexceptions runs what ends a
// transaction, and so would commit half of it.
#include "nvl/language.h"
#include "nvl/passes.h"
#include "nvl/runtime.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

bool is_setjmp(const CallBase &call) {
    // vfork returns twice, too, but without a jump.
    if (call.getIntrinsicID() == Intrinsic::eh_sjlj_setjmp)
        return true;
    const Function *callee = call.getCalledFunction();
    return call.hasFnAttr(Attribute::ReturnsTwice) && call.getType()->isIntegerTy() &&
           (!callee || callee->getName() != "vfork");
}

void unwind_after(CallBase &call) {
    Module &module = *call.getModule();
    IRBuilder<> builder(&call);
    Value *place = builder.CreateCall(runtime::declare(module, runtime::tx_depth), {});
    Value *depth = builder.CreateLoad(builder.getInt32Ty(), place, "depth");
    Instruction *behind = call.getNextNode();
    builder.SetInsertPoint(behind);
    // getcontext returns the same each time; the first time there is nothing to roll back.
    const Function *callee = call.getCalledFunction();
    if (!callee || callee->getName() != "getcontext")
        behind = SplitBlockAndInsertIfThen(builder.CreateIsNotNull(&call), behind, false);
    IRBuilder<> after(behind);
    after.SetCurrentDebugLocation(call.getDebugLoc());
    after.CreateCall(runtime::declare(module, runtime::tx_unwind), {depth});
}

} // namespace

void unwind_after_jumps(Module &module) {
    for (Function &function : module) {
        SmallVector<CallBase *, 4> calls;
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallInst>(&instruction))
                if (is_setjmp(*call) && call->getNextNode())
                    calls.push_back(call);
        for (CallBase *call : calls)
            unwind_after(*call);
    }
}

void refuse_exceptions(Module &module) {
    for (Function &function : module) {
        Instruction *end = nullptr;
        bool has_cleanups = false;
        for (Instruction &instruction : instructions(function)) {
            has_cleanups |= isa<LandingPadInst>(instruction);
            if (!end && runtime::called(instruction) == runtime::tx_end)
                end = &instruction;
        }
        if (end && has_cleanups)
            module.getContext().emitError(
                end, "a transaction in code that is compiled with -fexceptions: a thread that is "
                     "cancelled would commit half of it; leave that option out");
    }
}

} // namespace durumcc::nvl
