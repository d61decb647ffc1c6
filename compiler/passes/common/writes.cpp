#include "writes.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

namespace durumcc {

using namespace llvm;

namespace {

Write of_type(Instruction &instruction, Value *start, Type *type) {
    const DataLayout &layout = instruction.getModule()->getDataLayout();
    return Write{&instruction, {start, 0, layout.getTypeStoreSize(type)}};
}

// Wherever that is.
std::optional<Write> anywhere(Instruction &instruction) {
    if (auto *store = dyn_cast<StoreInst>(&instruction))
        return of_type(instruction, store->getPointerOperand(),
                       store->getValueOperand()->getType());
    if (auto *update = dyn_cast<AtomicRMWInst>(&instruction))
        return of_type(instruction, update->getPointerOperand(), update->getType());
    if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction))
        return of_type(instruction, exchange->getPointerOperand(),
                       exchange->getNewValOperand()->getType());
    if (auto *access = dyn_cast<AnyMemIntrinsic>(&instruction))
        return Write::of_length(instruction, access->getRawDest(), access->getLength());
    // The bytes that the mask leaves out belong to the same vector of the program.
    if (auto *call = dyn_cast<IntrinsicInst>(&instruction))
        if (call->getIntrinsicID() == Intrinsic::masked_store)
            return of_type(instruction, call->getArgOperand(1), call->getArgOperand(0)->getType());
    return std::nullopt;
}

} // namespace

Write Write::of_length(Instruction &instruction, Value *start, Value *length) {
    if (const auto *bytes = dyn_cast<ConstantInt>(length))
        return Write{&instruction, {start, 0, bytes->getZExtValue()}};
    return Write{&instruction, {start, 0, 0, length}};
}

std::optional<Write> write_of(Instruction &instruction, const Language &language) {
    if (std::optional<Write> write = anywhere(instruction)) {
        if (language.is_durable(write->bytes.start))
            return write;
        return std::nullopt;
    }
    std::optional<Write> write = language.announced(instruction);
    if (write)
        write->is_announced = true;
    return write;
}

Value *Bytes::first(IRBuilderBase &builder) const {
    return offset == 0 ? start : builder.CreatePtrAdd(start, builder.getInt64(offset));
}

Value *Bytes::size(IRBuilderBase &builder) const {
    if (!length)
        return builder.getInt64(count);
    return builder.CreateZExtOrTrunc(length, builder.getInt64Ty());
}

bool may_be_passed(const Instruction &instruction) {
    if (instruction.isVolatile() || instruction.isAtomic() ||
        !isGuaranteedToTransferExecutionToSuccessor(&instruction))
        return false;
    return !isa<CallBase>(instruction) || isa<IntrinsicInst>(instruction) ||
           !instruction.mayWriteToMemory();
}

} // namespace durumcc
