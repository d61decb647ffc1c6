#include "signature.h"

namespace durumcc {

using namespace llvm;

namespace {

Type *type_of(LLVMContext &context, char letter) {
    switch (letter) {
    case 'n':
        return PointerType::get(context, 1);
    case 'p':
        return PointerType::get(context, 0);
    case 'l':
        return Type::getInt64Ty(context);
    case 'i':
        return Type::getInt32Ty(context);
    default:
        return Type::getVoidTy(context);
    }
}

} // namespace

FunctionCallee declare(Module &module, const Signature &signature) {
    LLVMContext &context = module.getContext();
    SmallVector<Type *, 4> parameters;
    for (const char *letter = signature.types + 1; *letter; letter++)
        parameters.push_back(type_of(context, *letter));
    auto *type = FunctionType::get(type_of(context, signature.types[0]), parameters, false);
    FunctionCallee callee = module.getOrInsertFunction(signature.name, type);
    auto *function = dyn_cast<Function>(callee.getCallee());
    if (!function)
        return callee;
    function->setDoesNotThrow();
    switch (signature.effects) {
    case Effects::Any:
        break;
    case Effects::ReadsArgument:
        function->setMemoryEffects(MemoryEffects::argMemOnly(ModRefInfo::Ref) |
                                   MemoryEffects::inaccessibleMemOnly());
        break;
    case Effects::None:
        function->setDoesNotAccessMemory();
        function->setWillReturn();
        break;
    }
    return callee;
}

} // namespace durumcc
