#include "ido/addresses.h"

#include "ido/globals.h"
#include "ido/runtime.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>

namespace durumcc::ido {
namespace {

using namespace llvm;

constexpr unsigned name_bits = 30;

uint64_t name_of(StringRef text) {
    return std::max<uint64_t>(xxh3_64bits(text) >> (64 - name_bits), 1);
}

// What is no part of the program, but of what the passes and the compiler say of it.
bool is_told(StringRef name) {
    return name.starts_with("__durum") || name.starts_with("llvm.") || runtime::has(name);
}

// What functions refer to, also by constants.
class Referred {
  public:
    SetVector<Function *> functions;
    SetVector<GlobalVariable *> variables;

    void add(Function &function) {
        for (Instruction &instruction : instructions(function))
            for (Use &use : instruction.operands()) {
                auto *call = dyn_cast<CallBase>(&instruction);
                // Who is called has no pointer.
                if (!(call && call->isCallee(&use) && isa<Function>(use.get())))
                    add(use.get());
            }
        while (!to_do.empty())
            look_at(*to_do.pop_back_val());
    }

  private:
    SmallVector<Constant *, 16> to_do;
    SmallPtrSet<Constant *, 32> seen;

    void add(Value *value) {
        if (auto *constant = dyn_cast<Constant>(value); constant && seen.insert(constant).second)
            to_do.push_back(constant);
    }

    void look_at(Constant &constant) {
        if (auto *function = dyn_cast<Function>(&constant)) {
            if (!is_told(function->getName()))
                functions.insert(function);
        } else if (auto *variable = dyn_cast<GlobalVariable>(&constant)) {
            if (is_told(variable->getName()) || variable->isThreadLocal())
                return;
            variables.insert(variable);
            if (variable->isConstant() && variable->hasInitializer())
                add(variable->getInitializer());
        } else if (!isa<GlobalValue, BlockAddress>(constant)) {
            for (Use &operand : constant.operands())
                add(operand.get());
        }
    }
};

std::string lasting_name(const Function &function) {
    if (!function.hasLocalLinkage())
        return function.getName().str();
    StringRef file = sys::path::filename(function.getParent()->getSourceFileName());
    return (file + ":" + function.getName()).str();
}

// A constant is what is in it: its own name is a number for most.
std::string content_of(const GlobalVariable &constant) {
    std::string text;
    raw_string_ostream out(text);
    out << sys::path::filename(constant.getParent()->getSourceFileName()) << ":";
    constant.getInitializer()->print(out);
    return text;
}

bool can_be_padded(const GlobalVariable &constant) {
    SmallVector<std::pair<unsigned, MDNode *>, 2> metadata;
    constant.getAllMetadata(metadata);
    return constant.hasLocalLinkage() && constant.hasInitializer() && !constant.hasComdat() &&
           !constant.hasSection() && !constant.isExternallyInitialized() &&
           all_of(metadata, [](const auto &one) { return one.first == LLVMContext::MD_dbg; });
}

// Takes its place.
Constant *pad(GlobalVariable &constant) {
    Module &module = *constant.getParent();
    Type *byte = Type::getInt8Ty(module.getContext());
    Type *inner = constant.getValueType();
    const Align align =
        std::max(constant.getAlign().valueOrOne(), module.getDataLayout().getABITypeAlign(inner));
    Type *front = ArrayType::get(byte, align.value()), *back = ArrayType::get(byte, 1);
    auto *type = StructType::get(front, inner, back);
    Constant *content =
        ConstantStruct::get(type, {Constant::getNullValue(front), constant.getInitializer(),
                                   Constant::getNullValue(back)});
    auto *padded = new GlobalVariable(module, type, true, constant.getLinkage(), content);
    padded->copyAttributesFrom(&constant);
    padded->setAlignment(align);
    padded->takeName(&constant);
    SmallVector<DIGlobalVariableExpression *, 1> told;
    constant.getDebugInfo(told);
    for (DIGlobalVariableExpression *one : told)
        padded->addDebugInfo(DIGlobalVariableExpression::get(
            module.getContext(), one->getVariable(),
            DIExpression::append(one->getExpression(), {dwarf::DW_OP_plus_uconst, align.value()})));
    Type *number = Type::getInt32Ty(module.getContext());
    Constant *place = ConstantExpr::getInBoundsGetElementPtr(
        type, padded,
        ArrayRef<Constant *>{ConstantInt::get(number, 0), ConstantInt::get(number, 1)});
    constant.replaceAllUsesWith(place);
    constant.eraseFromParent();
    return place;
}

} // namespace

void tell_addresses(Module &module, ArrayRef<Function *> functions) {
    Referred referred;
    for (Function *function : functions)
        referred.add(*function);
    LLVMContext &context = module.getContext();
    Type *number = Type::getInt64Ty(context);
    // struct __durum_ido_lock, with a name of 30 bits.
    auto *type = StructType::get(context, {PointerType::get(context, 0), number, number});
    SmallVector<Constant *, 16> entries;
    auto enter = [&](Constant *place, uint64_t size, StringRef name) {
        entries.push_back(ConstantStruct::get(type, {place, ConstantInt::get(number, size),
                                                     ConstantInt::get(number, name_of(name))}));
    };
    for (Function *function : referred.functions)
        enter(function, 1, lasting_name(*function));
    for (GlobalVariable *variable : referred.variables) {
        Type *inner = variable->getValueType();
        const uint64_t size = inner->isSized() ? module.getDataLayout().getTypeAllocSize(inner) : 0;
        // Sections read nothing of a variable that does not last, so a pointer to the end of one is
        // of no use.
        if (!variable->isConstant() && size)
            enter(variable, size, lasting_name(*variable));
        if (variable->isConstant() && can_be_padded(*variable)) {
            const std::string content = content_of(*variable);
            enter(pad(*variable), size + 1, content);
        }
    }
    if (entries.empty())
        return;
    auto *array = ArrayType::get(type, entries.size());
    auto *table = new GlobalVariable(module, array, true, GlobalValue::PrivateLinkage,
                                     ConstantArray::get(array, entries), "__durum_ido_addresses");
    runtime::call_at_start(module, runtime::register_addresses, *table, entries.size());
}

} // namespace durumcc::ido
