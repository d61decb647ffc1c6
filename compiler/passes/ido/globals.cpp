//   static int count = 7;                     static const int initial = 7;
//                                             static struct global count = {&initial, ...};
//   count++;                                  int *place = __durum_ido_global(&count);
//                                             (*place)++;
//
// Before the optimizer, which knows nothing of a value that was there before the program.
#include "ido/globals.h"

#include "ido/language.h"
#include "ido/openers.h"
#include "ido/refused.h"
#include "ido/runtime.h"
#include "ido/volatile_pointers.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Support/Path.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

constexpr const char durable[] = "durum_durable";
// Behind it, the text of docs/format/types.md.
constexpr const char type_of[] = "durum_type ";

// struct __durum_ido_global: the place, once it is known; the name; the bytes of a new one, or null
// if another file defines it; their number; what the place is a multiple of; the type, or null.
StructType *descriptor_type(LLVMContext &context) {
    Type *pointer = PointerType::get(context, 0);
    Type *number = Type::getInt64Ty(context);
    return StructType::get(context, {pointer, pointer, pointer, number, number, pointer});
}

// The text of an entry of the list of annotations.
StringRef text_of(const Constant &entry) {
    const auto *text = dyn_cast<GlobalVariable>(entry.getOperand(1)->stripPointerCasts());
    const auto *name = text ? dyn_cast<ConstantDataArray>(text->getInitializer()) : nullptr;
    return name && name->isCString() ? name->getAsCString() : "";
}

// Takes those that last from the list, each with the text of its type.
MapVector<GlobalVariable *, StringRef> take_durable(Module &module) {
    MapVector<GlobalVariable *, StringRef> found;
    GlobalVariable *all = module.getNamedGlobal("llvm.global.annotations");
    const auto *entries = all ? dyn_cast<ConstantArray>(all->getInitializer()) : nullptr;
    if (!entries)
        return found;
    SmallVector<Constant *, 8> others;
    for (const Use &entry : entries->operands()) {
        auto *one = cast<Constant>(entry);
        auto *variable = dyn_cast<GlobalVariable>(one->getOperand(0)->stripPointerCasts());
        StringRef text = text_of(*one);
        if (variable && text == durable)
            found.insert({variable, ""});
        else if (variable && text.consume_front(type_of))
            found[variable] = text;
        else
            others.push_back(one);
    }
    if (found.empty())
        return found;
    if (!others.empty()) {
        auto *type = ArrayType::get(others.front()->getType(), others.size());
        auto *rest = new GlobalVariable(module, type, all->isConstant(), all->getLinkage(),
                                        ConstantArray::get(type, others));
        rest->takeName(all);
        rest->setSection(all->getSection());
    }
    all->eraseFromParent();
    return found;
}

// An attribute of descriptors: no pointer to the variable but those that its users make of it.
constexpr const char is_private[] = "durum-private";

// Whether nobody but its users knows where it is.
bool stays(const Value &pointer) {
    return all_of(pointer.uses(), [](const Use &use) {
        const User *user = use.getUser();
        if (isa<LoadInst>(user))
            return true;
        if (isa<StoreInst>(user))
            return use.getOperandNo() == StoreInst::getPointerOperandIndex();
        if (isa<MemIntrinsic>(user))
            return true;
        return isa<GEPOperator>(user) && stays(*user);
    });
}

GlobalVariable *describe(GlobalVariable &variable, StringRef type_text) {
    Module &module = *variable.getParent();
    LLVMContext &context = module.getContext();
    const DataLayout &layout = module.getDataLayout();
    StructType *type = descriptor_type(context);
    auto *none = ConstantPointerNull::get(PointerType::get(context, 0));
    Constant *initial = none;
    if (variable.hasInitializer())
        initial =
            new GlobalVariable(module, variable.getValueType(), true, GlobalValue::PrivateLinkage,
                               variable.getInitializer(), variable.getName() + ".initial");
    Type *number = type->getElementType(3);
    const uint64_t size = layout.getTypeAllocSize(variable.getValueType());
    Constant *told = none;
    if (!type_text.empty())
        told = runtime::text(module, type_text);
    const Align align = variable.getAlign().value_or(layout.getPreferredAlign(&variable));
    auto *descriptor = new GlobalVariable(
        module, type, false, GlobalValue::InternalLinkage,
        ConstantStruct::get(type, {none, runtime::text(module, lasting_name(variable)), initial,
                                   ConstantInt::get(number, size),
                                   ConstantInt::get(number, align.value()), told}),
        variable.getName() + ".durable");
    if (variable.hasLocalLinkage() && stays(variable))
        descriptor->addAttribute(is_private);
    return descriptor;
}

// Each function asks once, in front of all else. Where it has yet to be decided when the heap is
// opened, it asks at each use.
void replace(GlobalVariable &variable, GlobalVariable &descriptor) {
    Module &module = *variable.getParent();
    convertUsersOfConstantsToInstructions({&variable});
    MapVector<Function *, SmallVector<Use *, 8>> uses;
    for (Use &use : variable.uses())
        if (auto *user = dyn_cast<Instruction>(use.getUser()))
            uses[user->getFunction()].push_back(&use);
    FunctionCallee ask = runtime::declare(module, runtime::global);
    for (auto &[function, of_function] : uses) {
        if (is_opener(*function)) {
            for (Use *use : of_function)
                use->set(IRBuilder<>(before(*use)).CreateCall(ask, {&descriptor}));
            continue;
        }
        IRBuilder<> builder(&*function->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        Value *place = builder.CreateCall(ask, {&descriptor});
        for (Use *use : of_function)
            use->set(place);
    }
}

// The variable that an object is, or null.
const GlobalVariable *descriptor_of(const Value &object) {
    const auto *call = dyn_cast<CallBase>(&object);
    if (!call || runtime::called_by(*call) != runtime::global)
        return nullptr;
    return dyn_cast<GlobalVariable>(call->getArgOperand(0));
}

void ask_where_used(Instruction &asked) {
    for (Use &use : make_early_inc_range(asked.uses())) {
        Instruction *place = before(use);
        if (place->getParent() == asked.getParent())
            continue;
        Instruction *again = asked.clone();
        again->insertBefore(place);
        use.set(again);
    }
}

// What comes from elsewhere is none of what stays.
bool comes_from_elsewhere(const Value &object) {
    return isa<LoadInst, Argument, AllocaInst, GlobalValue>(object) ||
           (isa<CallBase>(object) && !isa<IntrinsicInst>(object));
}

bool apart(const Value &one, const Value &other) {
    const GlobalVariable *descriptor = descriptor_of(one), *another = descriptor_of(other);
    if (descriptor && another)
        return descriptor != another;
    if (descriptor)
        return descriptor->hasAttribute(is_private) && comes_from_elsewhere(other);
    return another && another->hasAttribute(is_private) && comes_from_elsewhere(one);
}

} // namespace

void ask_early(Function &function, BasicBlock::iterator place) {
    BasicBlock &block = *place.getNodeParent();
    const bool is_late = is_opener(function);
    DenseMap<Value *, Instruction *> known;
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
        if (runtime::called_by(instruction) != runtime::global)
            continue;
        if (is_late) {
            ask_where_used(instruction);
            continue;
        }
        Instruction *&first = known[cast<CallBase>(instruction).getArgOperand(0)];
        if (first) {
            instruction.replaceAllUsesWith(first);
            instruction.eraseFromParent();
            continue;
        }
        first = &instruction;
        instruction.moveBefore(block, place);
    }
}

bool are_apart(const Value *one, const Value *other) {
    SmallVector<const Value *, 4> ones, others;
    getUnderlyingObjects(one, ones, nullptr, 0);
    getUnderlyingObjects(other, others, nullptr, 0);
    return all_of(ones, [&](const Value *object) {
        return all_of(others, [&](const Value *another) { return apart(*object, *another); });
    });
}

std::string lasting_name(const GlobalVariable &variable) {
    if (!variable.hasLocalLinkage())
        return variable.getName().str();
    return (sys::path::filename(variable.getParent()->getSourceFileName()) + ":" +
            variable.getName())
        .str();
}

void move_globals(Module &module) {
    const bool warns = options_of(module).warns_of_volatile_pointers;
    SmallVector<Constant *, 8> defined;
    for (auto [variable, type_text] : take_durable(module)) {
        variable->removeDeadConstantUsers();
        if (warns)
            warn_of_volatile_pointers(*variable);
        GlobalVariable *descriptor = describe(*variable, type_text);
        if (variable->hasInitializer())
            defined.push_back(descriptor);
        replace(*variable, *descriptor);
        variable->removeDeadConstantUsers();
        // An initializer with its address: that is known when the program runs.
        if (!variable->use_empty())
            refuse_address(*variable);
        variable->replaceAllUsesWith(ConstantPointerNull::get(variable->getType()));
        variable->eraseFromParent();
    }
    if (defined.empty())
        return;
    Type *pointer = PointerType::get(module.getContext(), 0);
    auto *type = ArrayType::get(pointer, defined.size());
    auto *table = new GlobalVariable(module, type, true, GlobalValue::PrivateLinkage,
                                     ConstantArray::get(type, defined), "__durum_ido_globals");
    runtime::call_at_start(module, runtime::register_globals, *table, defined.size());
}

} // namespace durumcc::ido
