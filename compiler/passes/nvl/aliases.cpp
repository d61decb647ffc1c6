// What the optimizer may know about NVM and does not find out from address spaces, which mean
// nothing to it on x86-64 and AArch64: an object in NVM is nowhere else.
//
//   store double %x, ptr addrspace(1) %p, !alias.scope !nvm, !noalias !volatile
//   %y = load double, ptr %q, !alias.scope !volatile, !noalias !nvm
//
// With it a loop over both kinds of arrays needs no checks at run time to be vectorized.
#include "nvl/language.h"
#include "nvl/passes.h"
#include "nvl/runtime.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

enum class Memory { Nvm, Volatile, Both };

// What is read by functions of the library (library.cpp) leads out of NVM by a cast, which the
// optimizer keeps when it reads by itself.
bool leaves_nvm(const Instruction &instruction) {
    const auto *cast = dyn_cast<AddrSpaceCastInst>(&instruction);
    return cast && cast->getSrcAddressSpace() == nvm_space;
}
bool may_come_from_nvm(const Value *pointer) {
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    return any_of(objects, [](const Value *object) { return is_nvm(object); });
}

Memory memory_of(const Instruction &access, bool has_casts) {
    auto of = [&](const Value *pointer) {
        if (is_nvm(pointer))
            return Memory::Nvm;
        return has_casts && may_come_from_nvm(pointer) ? Memory::Both : Memory::Volatile;
    };
    if (const Value *pointer = getLoadStorePointerOperand(&access))
        return of(pointer);
    if (const auto *copy = dyn_cast<MemTransferInst>(&access)) {
        Memory to = of(copy->getRawDest());
        return to == of(copy->getRawSource()) ? to : Memory::Both;
    }
    if (const auto *fill = dyn_cast<MemSetInst>(&access))
        return of(fill->getRawDest());
    return Memory::Both;
}

void add(Instruction &access, unsigned kind, MDNode *scopes) {
    access.setMetadata(kind, MDNode::concatenate(access.getMetadata(kind), scopes));
}

bool calls_code(Function &function) {
    return any_of(instructions(function), [](const Instruction &instruction) {
        return instruction.isVolatile() ||
               (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction));
    });
}

} // namespace

void tell_aliases(Module &module) {
    LLVMContext &context = module.getContext();
    MDBuilder builder(context);
    // By name, and so the same in each module and each time: accesses that know it learn nothing
    // new.
    MDNode *domain = builder.createAliasScopeDomain("nvl");
    MDNode *nvm = MDNode::get(context, builder.createAliasScope("nvm", domain));
    MDNode *rest = MDNode::get(context, builder.createAliasScope("volatile", domain));
    for (Function &function : module) {
        bool has_casts = any_of(instructions(function), leaves_nvm);
        for (Instruction &instruction : instructions(function)) {
            Memory memory = memory_of(instruction, has_casts);
            if (memory == Memory::Both)
                continue;
            add(instruction, LLVMContext::MD_alias_scope, memory == Memory::Nvm ? nvm : rest);
            add(instruction, LLVMContext::MD_noalias, memory == Memory::Nvm ? rest : nvm);
        }
    }
}

// `restrict` says that only this pointer leads to what the function changes, so the optimizer would
// move a store past a call, and out of a transaction: to a runtime that reads all of NVM this does
// not hold. Without calls and volatile accesses there is nobody to
// see it.
void forget_restrict(Module &module) {
    for (Function &function : module) {
        bool is_forgotten = !function.isDeclaration() && calls_code(function);
        for (Argument &argument : function.args())
            if (is_forgotten && is_nvm(&argument))
                argument.removeAttr(Attribute::NoAlias);
    }
}

} // namespace durumcc::nvl
