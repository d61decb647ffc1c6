// Stores of pointers in NVM, loads and stores of weak ones, and copies that may hold pointers
// become calls of the runtime, which counts.
//
//   store ptr addrspace(1) %q, ptr addrspace(1) %p      call void @__nvl_store_ptr(%p, %q)
//   %w = call @llvm.ptr.annotation.p1.p0(%p, "nvl_wp")
//   %q = load ptr addrspace(1), ptr addrspace(1) %w     %q = call @__nvl_load_weak(%p)
//   call void @llvm.memcpy.p1.p0.i64(%p, %x, i64 64)    call void @__nvl_copy(%p, %x, i64 64)
//
// This has to be done before any other pass: the optimizer would make 8-byte copies integers, and
// pairs of pointers vectors, and then nobody knows that they are pointers.
//
// With -fnvl-no-counts stores of strong pointers stay what they are, and are made durable as
// others. What they lead to must not be freed, so all that the module allocates has a count from
// the start that keeps it:
//
//   %q = call @__nvl_alloc(...)                         %q = call @__nvl_alloc_pinned(...)
#include "nvl/language.h"
#include "nvl/passes.h"
#include "nvl/runtime.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

// A pointer in NVM has 8 bytes and is never cut in two.
constexpr uint64_t pointer_size = 8;

bool has_nvm_pointer(const Type *type) {
    if (is_nvm(type->getScalarType()))
        return true;
    if (const auto *array = dyn_cast<ArrayType>(type))
        return has_nvm_pointer(array->getElementType());
    if (const auto *record = dyn_cast<StructType>(type))
        return any_of(record->elements(), has_nvm_pointer);
    return false;
}

bool is_weak_annotation(const Value *value) {
    const auto *call = dyn_cast<IntrinsicInst>(value);
    if (!call || call->getIntrinsicID() != Intrinsic::ptr_annotation || !is_nvm(call))
        return false;
    const auto *text = dyn_cast<GlobalVariable>(call->getArgOperand(1)->stripPointerCasts());
    const auto *bytes = text && text->hasInitializer()
                            ? dyn_cast<ConstantDataArray>(text->getInitializer())
                            : nullptr;
    return bytes && bytes->isCString() && bytes->getAsCString() == "nvl_wp";
}

bool is_weak(const Value *address) {
    while (const auto *element = dyn_cast<GEPOperator>(address))
        address = element->getPointerOperand();
    return is_weak_annotation(address);
}

// Whether no pointer is among what is copied. Clang says of which types the members of a struct
// are, as far as it optimizes; what it calls bytes ("omnipotent char") may be an array of anything.
bool is_plain(const MemIntrinsic &copy) {
    const auto *size = dyn_cast<ConstantInt>(copy.getLength());
    if (size && size->getZExtValue() < pointer_size)
        return true;
    const MDNode *members = copy.getMetadata(LLVMContext::MD_tbaa_struct);
    if (!members || !size)
        return false;
    for (unsigned i = 0; i + 2 < members->getNumOperands(); i += 3) {
        const auto *bytes = mdconst::dyn_extract<ConstantInt>(members->getOperand(i + 1));
        const auto *tag = dyn_cast<MDNode>(members->getOperand(i + 2));
        const auto *access =
            tag && tag->getNumOperands() > 1 ? dyn_cast<MDNode>(tag->getOperand(1)) : nullptr;
        const auto *name = access && access->getNumOperands() > 0
                               ? dyn_cast<MDString>(access->getOperand(0))
                               : nullptr;
        if (!bytes || !name)
            return false;
        if (bytes->getZExtValue() >= pointer_size &&
            (name->getString() == "any pointer" || name->getString() == "omnipotent char" ||
             name->getString().starts_with("p")))
            return false;
    }
    return true;
}

class Lowering {
  public:
    Lowering(Module &module, const Options &options) : module(module), options(options) {}

    void lower(Function &function) {
        SmallVector<Instruction *, 32> found;
        SmallVector<Instruction *, 8> annotations;
        for (Instruction &instruction : instructions(function)) {
            if (is_weak_annotation(&instruction))
                annotations.push_back(&instruction);
            else if (concerns_pointers(instruction))
                found.push_back(&instruction);
        }
        for (Instruction *instruction : found)
            lower(*instruction);
        // Nothing needs to know any more.
        for (Instruction *annotation : annotations) {
            annotation->replaceAllUsesWith(cast<CallBase>(annotation)->getArgOperand(0));
            annotation->eraseFromParent();
        }
    }

  private:
    bool concerns_pointers(const Instruction &instruction) const {
        if (const auto *store = dyn_cast<StoreInst>(&instruction)) {
            const Value *value = store->getValueOperand();
            if (!is_nvm(store->getPointerOperand()) || !has_nvm_pointer(value->getType()))
                return false;
            return !options.no_counts || !is_nvm(value) || is_weak(store->getPointerOperand());
        }
        if (const auto *load = dyn_cast<LoadInst>(&instruction))
            return is_nvm(load) && is_nvm(load->getPointerOperand()) &&
                   is_weak(load->getPointerOperand());
        if (const auto *access = dyn_cast<MemIntrinsic>(&instruction))
            return is_nvm(access->getRawDest()) && !is_plain(*access);
        return false;
    }

    void lower(Instruction &instruction) {
        IRBuilder<> builder(&instruction);
        if (auto *store = dyn_cast<StoreInst>(&instruction)) {
            lower_store(builder, *store);
        } else if (auto *load = dyn_cast<LoadInst>(&instruction)) {
            auto *call = builder.CreateCall(runtime::declare(module, runtime::load_weak),
                                            {load->getPointerOperand()});
            call->takeName(load);
            load->replaceAllUsesWith(call);
        } else if (auto *fill = dyn_cast<MemSetInst>(&instruction)) {
            builder.CreateCall(runtime::declare(module, runtime::fill),
                               {fill->getRawDest(),
                                builder.CreateZExt(fill->getValue(), builder.getInt32Ty()),
                                size_of(builder, *fill)});
        } else {
            auto &copy = cast<MemTransferInst>(instruction);
            lower_copy(builder, copy.getRawDest(), copy.getRawSource(), size_of(builder, copy));
        }
        instruction.eraseFromParent();
    }

    void lower_store(IRBuilder<> &builder, StoreInst &store) {
        Value *value = store.getValueOperand();
        Value *slot = store.getPointerOperand();
        if (is_nvm(value)) {
            const char *name = is_weak(slot) ? runtime::store_weak : runtime::store_ptr;
            builder.CreateCall(runtime::declare(module, name), {slot, value});
            return;
        }
        // Several at once, as a struct or an array in registers.
        const DataLayout &layout = module.getDataLayout();
        IRBuilder<> entry(&*store.getFunction()->getEntryBlock().getFirstInsertionPt());
        AllocaInst *memory = entry.CreateAlloca(value->getType());
        builder.CreateStore(value, memory);
        lower_copy(builder, slot, memory,
                   builder.getInt64(layout.getTypeStoreSize(value->getType())));
    }

    void lower_copy(IRBuilder<> &builder, Value *to, Value *from, Value *size) {
        // The runtime only reads there, and its function is the same for both spaces.
        from = builder.CreateAddrSpaceCast(from, builder.getPtrTy());
        builder.CreateCall(runtime::declare(module, runtime::copy), {to, from, size});
    }

    static Value *size_of(IRBuilder<> &builder, MemIntrinsic &access) {
        return builder.CreateZExtOrTrunc(access.getLength(), builder.getInt64Ty());
    }

    Module &module;
    const Options &options;
};

// Calls of a function that only the front end calls go to another one of the same type.
void redirect(Module &module, const char *from, const char *to) {
    if (Function *function = module.getFunction(from)) {
        FunctionCallee other =
            module.getOrInsertFunction(to, function->getFunctionType(), function->getAttributes());
        function->replaceAllUsesWith(other.getCallee());
    }
}

} // namespace

void lower_pointers(Module &module, const Options &options) {
    if (options.no_counts)
        redirect(module, runtime::alloc, runtime::alloc_pinned);
    Lowering lowering(module, options);
    for (Function &function : module)
        if (!function.isDeclaration())
            lowering.lower(function);
}

} // namespace durumcc::nvl
