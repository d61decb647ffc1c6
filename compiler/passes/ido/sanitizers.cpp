#include "ido/sanitizers.h"

#include "llvm/IR/Instructions.h"

namespace durumcc::ido {

using namespace llvm;

bool is_sanitizers(const GlobalValue &global) {
    return global.getName().starts_with("__ubsan_") ||
           global.getName() == "__asan_handle_no_return";
}

bool never_returns(const CallBase &call) {
    if (call.doesNotReturn())
        return true;
    // UBSan takes the attribute away, and tells behind the call if the place is reached.
    const auto *invoke = dyn_cast<InvokeInst>(&call);
    const Instruction *next =
        invoke ? invoke->getNormalDest()->getFirstNonPHIOrDbg() : call.getNextNonDebugInstruction();
    const auto *behind = dyn_cast_or_null<CallBase>(next);
    const Function *handler = behind ? behind->getCalledFunction() : nullptr;
    return handler && handler->getName().starts_with("__ubsan_handle_builtin_unreachable");
}

} // namespace durumcc::ido
