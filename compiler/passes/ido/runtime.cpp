#include "ido/runtime.h"

#include "common/signature.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace durumcc::ido::runtime {
namespace {

using namespace llvm;

constexpr Signature signatures[] = {
    {thread, "p", Effects::None},
    {record, "vppp", Effects::Any},
    {record_word, "vppp", Effects::Any},
    {record_release, "vpppp", Effects::Any},
    {call, "ppppp", Effects::Any},
    {returned, "vpp", Effects::Any},
    {enter, "ippp", Effects::Any},
    {wrote, "vppl", Effects::Any},
    {locals, "ppl", Effects::Any},
    {other_locals, "ppl", Effects::Any},
    {leave, "vpp", Effects::Any},
    {copy_argument, "vppl", Effects::Any},
    {refused, "vpp", Effects::Any},
    {check_call, "vppp", Effects::Any},
    {check_pointer, "vppp", Effects::Any},
    {written_elsewhere, "ppp", Effects::Any},
    {read_elsewhere, "vppp", Effects::Any},
    {global, "pp", Effects::None},
    {register_globals, "vpl", Effects::Any},
    {register_locks, "vpl", Effects::Any},
    {register_functions, "vpl", Effects::Any},
    {register_addresses, "vpl", Effects::Any},
};

// What compiled code looks at of a thread, by offsets in bytes.
constexpr uint64_t depth_at = 0;
constexpr uint64_t resuming_at = 4;
constexpr uint64_t store_begin_at = 8;
constexpr uint64_t store_size_at = 16;
constexpr uint64_t region_at = 24;
constexpr uint64_t words_at = 32;
constexpr uint64_t result_at = 40;

Value *load(IRBuilderBase &builder, Type *type, Value *thread, uint64_t offset) {
    return builder.CreateLoad(type, at(builder, *thread, offset));
}

void store(IRBuilderBase &builder, Value *value, Value *thread, uint64_t offset) {
    builder.CreateStore(value, at(builder, *thread, offset));
}

} // namespace

FunctionCallee declare(Module &module, StringRef name) {
    const auto *found = find_if(signatures, [&](const Signature &one) { return name == one.name; });
    assert(found != std::end(signatures) && "a function that the passes do not call");
    FunctionCallee callee = durumcc::declare(module, *found);
    // A part of the stack is nobody else's: what is written elsewhere overwrites nothing of it.
    if (name == locals)
        cast<Function>(callee.getCallee())->addRetAttr(Attribute::NoAlias);
    return callee;
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

Value *read_by(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    const bool reads = callee && callee->isDeclaration() && callee->getName() == "nv_strdup";
    return reads && call->arg_size() == 1 ? call->getArgOperand(0) : nullptr;
}

bool is_asked_again(const Instruction &instruction) {
    StringRef name = called_by(instruction);
    return name == thread || name == global;
}

GlobalVariable *constant(Module &module, const Twine &name, Constant *value) {
    SmallString<64> known;
    if (GlobalVariable *variable = module.getNamedGlobal(name.toStringRef(known)))
        return variable;
    return new GlobalVariable(module, value->getType(), true, GlobalValue::PrivateLinkage, value,
                              name);
}

GlobalVariable *text(Module &module, StringRef text) {
    return constant(module, "__durum_ido_text." + text,
                    ConstantDataArray::getString(module.getContext(), text));
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

Value *at(IRBuilderBase &builder, Value &place, uint64_t offset) {
    return offset == 0 ? &place : builder.CreatePtrAdd(&place, builder.getInt64(offset));
}

Value *depth(IRBuilderBase &builder, Value *thread) {
    return load(builder, builder.getInt32Ty(), thread, depth_at);
}

Value *store_begin(IRBuilderBase &builder, Value *thread) {
    return load(builder, builder.getInt64Ty(), thread, store_begin_at);
}

Value *store_size(IRBuilderBase &builder, Value *thread) {
    return load(builder, builder.getInt64Ty(), thread, store_size_at);
}

Value *region(IRBuilderBase &builder, Value *thread) {
    return load(builder, builder.getInt32Ty(), thread, region_at);
}

Value *result(IRBuilderBase &builder, Value *thread) {
    return load(builder, builder.getPtrTy(), thread, result_at);
}

void enter_at(IRBuilderBase &builder, Value *thread, Value *words, Value *region, Value *result) {
    store(builder, words, thread, words_at);
    store(builder, result, thread, result_at);
    store(builder, region, thread, region_at);
}

// The depth and whether it resumes lie side by side: 0 and 1.
Value *has_completed(IRBuilderBase &builder, Value *thread) {
    static_assert(resuming_at == depth_at + 4);
    const bool is_little = builder.GetInsertBlock()->getDataLayout().isLittleEndian();
    Value *both = load(builder, builder.getInt64Ty(), thread, depth_at);
    return builder.CreateICmpEQ(both, builder.getInt64(is_little ? uint64_t(1) << 32 : 1));
}

} // namespace durumcc::ido::runtime
