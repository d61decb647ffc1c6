#include "ido/lock_names.h"

#include "ido/globals.h"
#include "ido/runtime.h"
#include "locks/calls.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>

namespace durumcc::ido {
namespace {

using namespace llvm;

// A lock's name has 63 bits: those of the variable's, and where in it the lock is, in words of 4. 0
// is no variable's: it stands for regions that no lock guards.
constexpr unsigned place_bits = 20;
constexpr unsigned name_bits = 63 - place_bits;

// With an initializer the type of a variable may have lost its name.
bool has_lock(const Type *type) {
    if (const auto *record = dyn_cast<StructType>(type)) {
        StringRef name = record->hasName() ? record->getName() : "";
        if (name.starts_with("union.pthread_") || name.contains("std::mutex"))
            return true;
    }
    return any_of(type->subtypes(), has_lock);
}

// Somebody else may take it.
bool is_passed_on(const GlobalVariable &variable) {
    SmallVector<const User *, 8> to_do(variable.users());
    SmallPtrSet<const User *, 8> seen;
    while (!to_do.empty()) {
        const User *user = to_do.pop_back_val();
        if (!seen.insert(user).second)
            continue;
        const auto *store = dyn_cast<StoreInst>(user);
        if (isa<CallBase, PHINode, SelectInst>(user) ||
            (store && store->getValueOperand()->stripInBoundsOffsets() == &variable))
            return true;
        if (isa<GetElementPtrInst, ConstantExpr>(user))
            to_do.append(user->user_begin(), user->user_end());
    }
    return false;
}

bool may_be_lock(const GlobalVariable &variable) {
    return !variable.isDeclaration() && !variable.isConstant() && !variable.isThreadLocal() &&
           !variable.getName().starts_with("llvm.") &&
           !variable.getName().starts_with(runtime::prefix) &&
           (has_lock(variable.getValueType()) || is_passed_on(variable));
}

bool takes_locks(const Module &module) {
    return any_of(module, [](const Function &function) {
        return any_of(instructions(function), [](const Instruction &instruction) {
            return locks::action_of(instruction).has_value();
        });
    });
}

} // namespace

void name_locks(Module &module) {
    if (!takes_locks(module))
        return;
    LLVMContext &context = module.getContext();
    Type *number = Type::getInt64Ty(context);
    // struct __durum_ido_lock: where the variable is, its size, and the name.
    auto *type = StructType::get(context, {PointerType::get(context, 0), number, number});
    SmallVector<Constant *, 16> entries;
    for (GlobalVariable &variable : module.globals()) {
        if (!may_be_lock(variable))
            continue;
        const uint64_t hash =
            std::max<uint64_t>(xxh3_64bits(lasting_name(variable)) >> (64 - name_bits), 1);
        const uint64_t size = module.getDataLayout().getTypeAllocSize(variable.getValueType());
        entries.push_back(ConstantStruct::get(
            type, {&variable, ConstantInt::get(number, size), ConstantInt::get(number, hash)}));
    }
    if (entries.empty())
        return;
    auto *array = ArrayType::get(type, entries.size());
    auto *table = new GlobalVariable(module, array, true, GlobalValue::PrivateLinkage,
                                     ConstantArray::get(array, entries), "__durum_ido_locks");
    runtime::call_at_start(module, runtime::register_locks, *table, entries.size());
}

} // namespace durumcc::ido
