#include "locks/outside.h"

#include "common/versions.h"
#include "locks/calls.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Constants.h"

namespace durumcc::locks {
namespace {

using namespace llvm;

// Which argument of a function begins a new thread with it.
std::optional<unsigned> start_argument(const CallBase &call) {
    const GlobalValue *called = called_by(call);
    if (!called)
        return std::nullopt;
    return StringSwitch<std::optional<unsigned>>(called->getName())
        .Case("pthread_create", 2)
        .Case("thrd_create", 1)
        .Default(std::nullopt);
}

// Callers count as callers, whatever they hold.
bool begins_thread(const Use &use) {
    const auto *call = dyn_cast<CallBase>(use.getUser());
    if (!call)
        return false;
    return call->isCallee(&use) ||
           (call->isArgOperand(&use) && start_argument(*call) == call->getArgOperandNo(&use));
}

// What std::thread calls in the new thread: the library knows it by a table of virtual functions,
// and programs have no name for it.
bool is_of_thread(const Function &function) {
    return function.getName().starts_with("_ZNSt6thread11_State_implI") &&
           function.getName().ends_with("6_M_runEv");
}

bool is_start(const Function &function) {
    if (is_of_thread(function))
        return true;
    return function.hasLocalLinkage() && function.hasAddressTaken() &&
           all_of(function.uses(), begins_thread);
}

// Constructors. What runs at the program's end may do so in a section that has called exit.
void find_constructors(Module &module) {
    const GlobalVariable *list = module.getNamedGlobal("llvm.global_ctors");
    const auto *entries =
        list && list->hasInitializer() ? dyn_cast<ConstantArray>(list->getInitializer()) : nullptr;
    if (!entries)
        return;
    for (const Use &entry : entries->operands()) {
        auto *function = dyn_cast<Function>(cast<Constant>(entry)->getAggregateElement(1u));
        if (function && function->hasLocalLinkage() && function->hasOneUse())
            function->addFnAttr(called_outside);
    }
}

} // namespace

void find_called_outside(Module &module) {
    find_constructors(module);
    for (Function &function : module)
        if (!function.isDeclaration() && is_start(function))
            function.addFnAttr(called_outside);
}

void call_all_outside(Module &module) {
    // The linker takes one of those that several files have.
    for (Function &function : module)
        if (!function.isDeclaration() && !function.isWeakForLinker())
            function.addFnAttr(called_outside);
}

} // namespace durumcc::locks
