#include "ido/runtime.h"

#include "common/signature.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace durumcc::ido::runtime {
namespace {

using namespace llvm;

constexpr Signature signatures[] = {
    {thread, "p", Effects::None},
    {record, "ppp", Effects::Any},
    {record_word, "ppp", Effects::Any},
    {record_release, "pppp", Effects::Any},
    {record_call, "ppp", Effects::Any},
    {recorded, "vpp", Effects::Any},
    {call, "ppp", Effects::Any},
    {called, "vpp", Effects::Any},
    {returned, "vpp", Effects::Any},
    {wrote, "vppl", Effects::Any},
    {locals, "ppl", Effects::Any},
    {leave, "vpp", Effects::Any},
    {copy_argument, "vppl", Effects::Any},
    {refused, "vpp", Effects::Any},
    {check_call, "vppp", Effects::Any},
    {check_pointer, "vppp", Effects::Any},
    {written_elsewhere, "pppl", Effects::Any},
    {read_elsewhere, "vppp", Effects::Any},
    {global, "pp", Effects::None},
    {register_globals, "vpl", Effects::Any},
    {register_locks, "vpl", Effects::Any},
    {register_functions, "vpl", Effects::Any},
};

} // namespace

FunctionCallee declare(Module &module, StringRef name) {
    const auto *found = find_if(signatures, [&](const Signature &one) { return name == one.name; });
    assert(found != std::end(signatures) && "a function that the passes do not call");
    return durumcc::declare(module, *found);
}

bool has(StringRef name) {
    return name.starts_with(prefix) || name.starts_with("nv_") || name.starts_with("durum_");
}

StringRef called_by(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    if (!callee || !callee->getName().starts_with(prefix))
        return {};
    return callee->getName();
}

bool is_asked_again(const Instruction &instruction) {
    StringRef name = called_by(instruction);
    return name == thread || name == global;
}

void call_at_start(Module &module, StringRef name, Constant &table, uint64_t count) {
    LLVMContext &context = module.getContext();
    auto *constructor = Function::Create(FunctionType::get(Type::getVoidTy(context), false),
                                         GlobalValue::InternalLinkage, "__durum_ido_start", module);
    IRBuilder<> builder(BasicBlock::Create(context, "", constructor));
    builder.CreateCall(declare(module, name), {&table, builder.getInt64(count)});
    builder.CreateRetVoid();
    appendToGlobalCtors(module, constructor, 0);
}

bool is_check(const Instruction &instruction) {
    StringRef name = called_by(instruction);
    return name == refused || name == check_call || name == check_pointer;
}

Value *depth(IRBuilderBase &builder, Value *thread) {
    return builder.CreateLoad(builder.getInt32Ty(), thread);
}

Value *store_begin(IRBuilderBase &builder, Value *thread) {
    return builder.CreateLoad(builder.getInt64Ty(),
                              builder.CreatePtrAdd(thread, builder.getInt64(8)));
}

Value *store_size(IRBuilderBase &builder, Value *thread) {
    return builder.CreateLoad(builder.getInt64Ty(),
                              builder.CreatePtrAdd(thread, builder.getInt64(16)));
}

} // namespace durumcc::ido::runtime
