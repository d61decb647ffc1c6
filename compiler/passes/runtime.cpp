#include "runtime.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Instructions.h"

namespace nvl::runtime {
namespace {

using namespace llvm;

// What the optimizer may know of a function.
enum class Effects {
    // Nothing: it may do whatever a function of another file may do. So neither loads nor stores of
    // the program pass it, and stores become durable in the order of such calls.
    Any,
    // It reads the bytes that its argument leads to: a store to them stays on its side of the call,
    // and loads of anything may pass.
    ReadsArgument,
    // Its value depends on the thread only.
    None,
};

struct Signature {
    const char *name;
    // The result, then the parameters: v void, n pointer into NVM, p pointer, l 64 bits, i 32 bits.
    const char *types;
    Effects effects;
};

constexpr Signature signatures[] = {
    {store_ptr, "vnn", Effects::Any},
    {store_weak, "vnn", Effects::Any},
    {load_weak, "nn", Effects::Any},
    {copy, "vnpl", Effects::Any},
    {fill, "vnil", Effects::Any},
    {persist, "vnl", Effects::ReadsArgument},
    {write_back, "vnl", Effects::ReadsArgument},
    {log, "vnl", Effects::ReadsArgument},
    {check_same, "vnn", Effects::Any},
    {tx_unwind, "vi", Effects::Any},
    {tx_depth, "p", Effects::None},
};

Type *type_of(LLVMContext &context, char letter) {
    switch (letter) {
    case 'n':
        return PointerType::get(context, nvm_space);
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

FunctionCallee declare(Module &module, StringRef name) {
    const auto *found = find_if(signatures, [&](const Signature &one) { return name == one.name; });
    assert(found != std::end(signatures) && "a function that the passes do not call");
    LLVMContext &context = module.getContext();
    SmallVector<Type *, 4> parameters;
    for (const char *letter = found->types + 1; *letter; letter++)
        parameters.push_back(type_of(context, *letter));
    auto *type = FunctionType::get(type_of(context, found->types[0]), parameters, false);
    FunctionCallee callee = module.getOrInsertFunction(name, type);
    auto *function = dyn_cast<Function>(callee.getCallee());
    if (!function)
        return callee;
    function->setDoesNotThrow();
    switch (found->effects) {
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

StringRef called(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    if (!callee || !callee->getName().starts_with("__nvl_"))
        return {};
    StringRef name = callee->getName();
    name.consume_back("_at");
    return name;
}

bool has_location(const Instruction &instruction) {
    const auto *call = dyn_cast<CallInst>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee &&
           StringSwitch<bool>(callee->getName())
               .Cases(store_ptr, store_weak, load_weak, copy, fill, true)
               .Cases(persist, write_back, log, check_same, tx_begin, tx_end, true)
               .Cases(tx_range, alloc, alloc_pinned, "__nvl_get_root", "__nvl_set_root", true)
               .Cases("nvl_close", "nvl_collect", "nvl_set_concurrent", true)
               .Default(false);
}

} // namespace nvl::runtime
