// Where setjmp returns for the second time, a jump may have left transactions. The runtime rolls
// them back.
//
//   %depth = load i32, ptr @__nvl_tx_depth()
//   %r = call i32 @_setjmp(ptr %buffer)
//   if (%r != 0) call void @__nvl_tx_unwind(i32 %depth)
#include "passes.h"
#include "runtime.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace nvl {
namespace {

using namespace llvm;

bool is_setjmp(const CallBase &call) {
    // vfork returns twice, too, but without a jump.
    const Function *callee = call.getCalledFunction();
    return call.hasFnAttr(Attribute::ReturnsTwice) && call.getType()->isIntegerTy() &&
           (!callee || callee->getName() != "vfork");
}

void unwind_after(CallBase &call) {
    Module &module = *call.getModule();
    IRBuilder<> builder(&call);
    Value *place = builder.CreateCall(runtime::declare(module, runtime::tx_depth), {});
    Value *depth = builder.CreateLoad(builder.getInt32Ty(), place, "depth");
    builder.SetInsertPoint(call.getNextNode());
    Value *has_jumped = builder.CreateIsNotNull(&call);
    Instruction *jumped = SplitBlockAndInsertIfThen(has_jumped, &*builder.GetInsertPoint(), false);
    IRBuilder<> after(jumped);
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

} // namespace nvl
