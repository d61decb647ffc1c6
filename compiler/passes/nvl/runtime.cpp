#include "nvl/runtime.h"

#include "common/signature.h"

#include "llvm/ADT/STLExtras.h"

namespace durumcc::nvl::runtime {
namespace {

using namespace llvm;

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

} // namespace

FunctionCallee declare(Module &module, StringRef name) {
    const auto *found = find_if(signatures, [&](const Signature &one) { return name == one.name; });
    assert(found != std::end(signatures) && "a function that the passes do not call");
    return durumcc::declare(module, *found);
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

} // namespace durumcc::nvl::runtime
