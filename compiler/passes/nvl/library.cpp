// Functions of the C library that get pointers into NVM. To Clang and to the optimizer the name
// tells what a function does, whatever the address space of its pointers. But what the optimizer
// makes of a call is another one, to a function with pointers of space 0: broken code. So calls
// that only read get the library's own pointers, those that write become what the other passes
// see, and of other functions the optimizer does not think that they are the library's.
//
//   call i32 @memcmp(ptr addrspace(1) %p, ptr %x, i64 8)     %r = addrspacecast %p to ptr
//                                                            call i32 @memcmp(%r, %x, i64 8)
//   call ptr @__memcpy_chk(ptr addrspace(1) %p, ptr %x, ...) call void @llvm.memcpy.p1.p0.i64(...)
//   declare ptr addrspace(1) @strchr(ptr addrspace(1), i32)  ... nobuiltin
#include "nvl/language.h"
#include "nvl/passes.h"
#include "nvl/runtime.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

enum class Library { Reads, Copies, Moves, Fills, Unknown };

// Those that the front end lets have NVM, as far as Clang makes no intrinsic of them.
Library library_function(StringRef name) {
    return StringSwitch<Library>(name)
        .Cases("memcmp", "bcmp", Library::Reads)
        .Case("__memcpy_chk", Library::Copies)
        .Case("__memmove_chk", Library::Moves)
        .Case("__memset_chk", Library::Fills)
        .Default(Library::Unknown);
}

bool has_nvm(const FunctionType *type) {
    return is_nvm(type->getReturnType()) ||
           any_of(type->params(), [](const Type *parameter) { return is_nvm(parameter); });
}

FunctionType *with_library_pointers(FunctionType *type) {
    SmallVector<Type *, 4> parameters;
    for (Type *parameter : type->params())
        parameters.push_back(is_nvm(parameter) ? PointerType::get(type->getContext(), 0)
                                               : parameter);
    return FunctionType::get(type->getReturnType(), parameters, type->isVarArg());
}

// The call decides how Clang declares a function, the first one in the file.
void declare_as_library(Function &function) {
    auto *other = Function::Create(with_library_pointers(function.getFunctionType()),
                                   function.getLinkage(), "", function.getParent());
    other->takeName(&function);
    other->copyAttributesFrom(&function);
    function.replaceAllUsesWith(other);
    function.eraseFromParent();
}

void cast_operands(Instruction &instruction) {
    IRBuilder<> builder(&instruction);
    for (Use &operand : instruction.operands())
        if (is_nvm(operand.get()))
            operand.set(builder.CreateAddrSpaceCast(operand.get(), builder.getPtrTy()));
}

void pass_library_pointers(CallBase &call) {
    cast_operands(call);
    call.mutateFunctionType(with_library_pointers(call.getFunctionType()));
}

// With the check of the length. Of an object in NVM no size is known: -1.
void check_length(CallBase &call, Value *length, Value *bound) {
    auto *known = dyn_cast<ConstantInt>(bound);
    if (known && known->isMinusOne())
        return;
    IRBuilder<> builder(&call);
    Value *is_beyond = builder.CreateICmpUGT(length, bound);
    builder.SetInsertPoint(SplitBlockAndInsertIfThen(is_beyond, &call, true));
    Module &module = *call.getModule();
    builder.CreateCall(module.getOrInsertFunction("__chk_fail", builder.getVoidTy()))
        ->setDoesNotReturn();
}

void lower_fortified(CallBase &call, Library what) {
    if (!call.use_empty()) {
        call.getContext().emitError(&call, "the value of this function forgets that it leads into "
                                           "NVM [nvl-library-result]");
        return;
    }
    Value *to = call.getArgOperand(0), *from = call.getArgOperand(1);
    Value *length = call.getArgOperand(2);
    check_length(call, length, call.getArgOperand(3));
    IRBuilder<> builder(&call);
    if (what == Library::Copies)
        builder.CreateMemCpy(to, MaybeAlign(), from, MaybeAlign(), length);
    else if (what == Library::Moves)
        builder.CreateMemMove(to, MaybeAlign(), from, MaybeAlign(), length);
    else
        builder.CreateMemSet(to, builder.CreateTrunc(from, builder.getInt8Ty()), length,
                             MaybeAlign());
    if (auto *invoke = dyn_cast<InvokeInst>(&call))
        changeToCall(invoke)->eraseFromParent();
    else
        call.eraseFromParent();
}

void adapt(CallBase &call, Library what) {
    if (none_of(call.args(), [](const Use &argument) { return is_nvm(argument.get()); }))
        return;
    if (what == Library::Reads || !is_nvm(call.getArgOperand(0)))
        pass_library_pointers(call);
    else
        lower_fortified(call, what);
}

// Sanitizers put functions of their own library in the place of copies and atomic instructions.
bool is_sanitized(const Function &function) {
    return function.hasFnAttribute(Attribute::SanitizeThread) ||
           function.hasFnAttribute(Attribute::SanitizeMemory) ||
           function.hasFnAttribute(Attribute::SanitizeHWAddress);
}

// The type of an intrinsic is part of its name.
void pass_library_pointers(MemIntrinsic &access) {
    Intrinsic::ID name = access.getIntrinsicID();
    bool is_fill = isa<MemSetInst>(access);
    pass_library_pointers(static_cast<CallBase &>(access));
    ArrayRef<Type *> parameters = access.getFunctionType()->params();
    SmallVector<Type *, 3> types{parameters[0], parameters[2]};
    if (!is_fill)
        types.insert(types.begin() + 1, parameters[1]);
    access.setCalledFunction(Intrinsic::getDeclaration(access.getModule(), name, types));
}

} // namespace

void adapt_library_calls(Module &module) {
    TargetLibraryInfoImpl names(Triple(module.getTargetTriple()));
    for (Function &function : make_early_inc_range(module)) {
        if (function.isIntrinsic())
            continue;
        Library what = library_function(function.getName());
        if (what == Library::Unknown || !function.isDeclaration()) {
            LibFunc known;
            if (has_nvm(function.getFunctionType()) && names.getLibFunc(function.getName(), known))
                function.addFnAttr(Attribute::NoBuiltin);
            continue;
        }
        SmallVector<CallBase *, 8> calls;
        for (User *user : function.users()) {
            auto *call = dyn_cast<CallBase>(user);
            if (call && call->getCalledOperand() == &function)
                calls.push_back(call);
        }
        for (CallBase *call : calls)
            adapt(*call, what);
        if (has_nvm(function.getFunctionType()))
            declare_as_library(function);
    }
}

void adapt_sanitized(Module &module) {
    for (Function &function : module) {
        if (!is_sanitized(function))
            continue;
        for (Instruction &instruction : instructions(function))
            if (auto *access = dyn_cast<MemIntrinsic>(&instruction))
                pass_library_pointers(*access);
            else if (instruction.isAtomic())
                cast_operands(instruction);
    }
}

} // namespace durumcc::nvl
