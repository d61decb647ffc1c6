//   node->name = buffer;    warning: the address of a local variable is stored in the heap
//
// Only where both sides are seen.
#include "ido/volatile_pointers.h"

#include "ido/runtime.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

constexpr const char end[] = ", which the next run has elsewhere [-Wdurum-volatile-pointer]";

StringRef called_by(const Value &value) {
    const auto *call = dyn_cast<CallBase>(&value);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee ? callee->getName() : "";
}

bool is_in_heap(const Value &object) {
    return StringSwitch<bool>(called_by(object))
        .Cases("nv_malloc", "nv_calloc", "nv_realloc", "nv_strdup", "nv_root", true)
        .StartsWith("__durum_ido_typed_", true)
        .Case(runtime::global, true)
        .Default(false);
}

// Null, if it may last.
const char *volatile_object(const Value &object) {
    if (isa<AllocaInst>(object))
        return "the address of a local variable";
    if (isa<Function>(object))
        return "the address of a function";
    if (const auto *variable = dyn_cast<GlobalVariable>(&object))
        return variable->isConstant() ? "the address of a constant of the program"
                                      : "the address of a variable that does not last";
    return StringSwitch<const char *>(called_by(object))
        .Cases("malloc", "calloc", "realloc", "strdup", "aligned_alloc", "_Znwm", "_Znam",
               "the address of memory that does not last")
        .Default(nullptr);
}

const char *what_is_volatile(const Value &pointer) {
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(&pointer, objects, nullptr, 0);
    for (const Value *object : objects)
        if (const char *what = volatile_object(*object))
            return what;
    return nullptr;
}

bool leads_to_heap(const Value &pointer) {
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(&pointer, objects, nullptr, 0);
    return all_of(objects, [](const Value *object) { return is_in_heap(*object); });
}

// The first address in a constant. Null, if it has none.
const GlobalValue *address_in(const Constant &constant) {
    if (const auto *address = dyn_cast<GlobalValue>(&constant))
        return address;
    for (const Use &operand : constant.operands())
        if (const auto *part = dyn_cast<Constant>(operand))
            if (const GlobalValue *address = address_in(*part))
                return address;
    return nullptr;
}

} // namespace

void warn_of_volatile_pointers(const GlobalVariable &variable) {
    const GlobalValue *address =
        variable.hasInitializer() ? address_in(*variable.getInitializer()) : nullptr;
    const char *what = address ? volatile_object(*address) : nullptr;
    if (!what)
        return;
    const std::string message =
        ("the value that '" + variable.getName() + "' begins with has " + what + end).str();
    variable.getContext().diagnose(DiagnosticInfoInlineAsm(message, DS_Warning));
}

void warn_of_volatile_pointers(const Module &module) {
    for (const Function &function : module)
        for (const Instruction &instruction : instructions(function)) {
            const auto *store = dyn_cast<StoreInst>(&instruction);
            if (!store || !store->getValueOperand()->getType()->isPointerTy() ||
                !leads_to_heap(*store->getPointerOperand()))
                continue;
            if (const char *what = what_is_volatile(*store->getValueOperand()))
                function.getContext().diagnose(DiagnosticInfoUnsupported(
                    function, Twine(what) + " is stored in the heap" + end, store->getDebugLoc(),
                    DS_Warning));
        }
}

} // namespace durumcc::ido
