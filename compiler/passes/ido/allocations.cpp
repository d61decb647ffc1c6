// Calls that the front end has given a type (compiler/frontend/allocated.cpp):
//
//   p = nv_malloc(n);    p = __durum_ido_typed_malloc(n, &type);
//
// and with -fdurable-malloc:
//
//   p = malloc(n);       p = __durum_ido_typed_malloc(n, &type);
//   free(p);             __durum_ido_free(p);    which looks where it lies
//
// Before the optimizer, which knows of these functions that nobody else sees what they give.
#include "ido/allocations.h"

#include "ido/language.h"
#include "ido/refused.h"
#include "ido/report.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/xxhash.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

struct Replacement {
    const char *from;
    const char *to;
};
constexpr Replacement replacements[] = {
    {"malloc", "nv_malloc"},
    {"calloc", "nv_calloc"},
    {"strdup", "nv_strdup"},
    {"__strdup", "nv_strdup"},
    {"realloc", "__durum_ido_realloc"},
    {"free", "__durum_ido_free"},
    {"_Znwm", "__durum_ido_new"},
    {"_Znam", "__durum_ido_new"},
    {"_ZnwmRKSt9nothrow_t", "__durum_ido_new_nothrow"},
    {"_ZnamRKSt9nothrow_t", "__durum_ido_new_nothrow"},
    {"_ZdlPv", "__durum_ido_free"},
    {"_ZdaPv", "__durum_ido_free"},
    {"_ZdlPvm", "__durum_ido_free_sized"},
    {"_ZdaPvm", "__durum_ido_free_sized"},
    {"_ZdlPvRKSt9nothrow_t", "__durum_ido_free_nothrow"},
    {"_ZdaPvRKSt9nothrow_t", "__durum_ido_free_nothrow"},
};

// The same with a type.
constexpr Replacement typed[] = {
    {"nv_root", "__durum_ido_typed_root"},
    {"nv_malloc", "__durum_ido_typed_malloc"},
    {"nv_calloc", "__durum_ido_typed_calloc"},
    {"nv_realloc", "__durum_ido_typed_nv_realloc"},
    {"malloc", "__durum_ido_typed_malloc"},
    {"calloc", "__durum_ido_typed_calloc"},
    {"realloc", "__durum_ido_typed_realloc"},
    {"_Znwm", "__durum_ido_typed_new"},
    {"_Znam", "__durum_ido_typed_new"},
    {"_ZnwmRKSt9nothrow_t", "__durum_ido_typed_new_nothrow"},
    {"_ZnamRKSt9nothrow_t", "__durum_ido_typed_new_nothrow"},
};

constexpr const char *aligned[] = {
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
};

// Null, if the module does not use it, or has one of its own.
Function *used(Module &module, const char *name) {
    Function *function = module.getFunction(name);
    return function && function->isDeclaration() && !function->use_empty() ? function : nullptr;
}

// What the front end has called: a function that allocates, and what its objects are.
struct Allocator {
    StringRef to;
    // Empty, if nobody knows: then why not.
    StringRef type;
    StringRef reason;
};

std::optional<Allocator> allocator(StringRef name) {
    const bool has_type = name.consume_front("__durum_ido_typed ");
    if (!has_type && !name.consume_front("__durum_ido_untyped "))
        return std::nullopt;
    const StringRef function = name.take_until([](char c) { return c == '\n'; });
    const StringRef text = name.drop_front(function.size() + 1);
    const auto *known =
        find_if(typed, [&](const Replacement &one) { return function == one.from; });
    if (known == std::end(typed))
        return std::nullopt;
    return has_type ? Allocator{known->to, text, ""} : Allocator{known->to, "", text};
}

// struct __durum_ido_type. Its name, which is a part of the code of functions, goes by the text.
Constant *type_object(Module &module, StringRef text) {
    LLVMContext &context = module.getContext();
    if (text.empty())
        return ConstantPointerNull::get(PointerType::getUnqual(context));
    const std::string name = "__durum_ido_type." + utohexstr(xxh3_64bits(text), /*LowerCase=*/true);
    if (GlobalVariable *known = module.getNamedGlobal(name))
        return known;
    Constant *said = new GlobalVariable(
        module, ArrayType::get(Type::getInt8Ty(context), text.size() + 1), true,
        GlobalValue::PrivateLinkage, ConstantDataArray::getString(context, text), name + ".text");
    Constant *value =
        ConstantStruct::getAnon({said, ConstantPointerNull::get(PointerType::getUnqual(context))});
    return new GlobalVariable(module, value->getType(), false, GlobalValue::PrivateLinkage, value,
                              name);
}

// With the type behind the arguments.
void call_with_type(CallBase &call, FunctionCallee callee, Constant *type) {
    SmallVector<Value *, 4> arguments(call.args());
    arguments.push_back(type);
    CallBase *made;
    if (auto *invoke = dyn_cast<InvokeInst>(&call))
        made = InvokeInst::Create(callee, invoke->getNormalDest(), invoke->getUnwindDest(),
                                  arguments, "", call.getIterator());
    else
        made = CallInst::Create(callee, arguments, "", call.getIterator());
    made->copyMetadata(call);
    made->setAttributes(call.getAttributes());
    made->takeName(&call);
    call.replaceAllUsesWith(made);
    call.eraseFromParent();
}

FunctionCallee declare_typed(Function &function, StringRef name) {
    const FunctionType *type = function.getFunctionType();
    SmallVector<Type *, 4> parameters(type->params());
    parameters.push_back(PointerType::getUnqual(function.getContext()));
    FunctionCallee callee = function.getParent()->getOrInsertFunction(
        name, FunctionType::get(type->getReturnType(), parameters, false),
        function.getAttributes());
    auto *made = cast<Function>(callee.getCallee());
    made->setDoesNotThrow();
    return callee;
}

} // namespace

void type_allocations(Module &module) {
    for (Function &function : make_early_inc_range(module)) {
        const std::optional<Allocator> found = allocator(function.getName());
        if (!found)
            continue;
        const FunctionCallee callee = declare_typed(function, found->to);
        Constant *type = type_object(module, found->type);
        for (User *user : make_early_inc_range(function.users())) {
            auto &call = *cast<CallBase>(user);
            if (found->type.empty() && options_of(module).reports)
                report_untyped(call, found->reason);
            call_with_type(call, callee, type);
        }
        function.eraseFromParent();
    }
}

void move_allocations(Module &module) {
    for (const char *name : aligned)
        if (const Function *function = used(module, name))
            refuse_calls(*function, Refusal::Alignment);
    for (const auto &[from, to] : replacements) {
        Function *function = used(module, from);
        if (!function)
            continue;
        function->setDoesNotThrow();
        if (Function *there = module.getFunction(to))
            function->replaceAllUsesWith(there);
        else
            function->setName(to);
    }
}

} // namespace durumcc::ido
