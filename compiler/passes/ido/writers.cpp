#include "ido/writers.h"

#include "ido/counters.h"
#include "ido/library.h"

#include "llvm/IR/IntrinsicInst.h"

namespace durumcc::ido {

using namespace llvm;

constexpr unsigned place_of_masked = 1;

bool is_masked_store(const Instruction &instruction) {
    const auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction);
    return intrinsic && intrinsic->getIntrinsicID() == Intrinsic::masked_store;
}

Use *place_written(Instruction &instruction) {
    if (auto *store = dyn_cast<StoreInst>(&instruction))
        return &store->getOperandUse(StoreInst::getPointerOperandIndex());
    if (auto *intrinsic = dyn_cast<MemIntrinsic>(&instruction))
        return &intrinsic->getRawDestUse();
    if (is_masked_store(instruction))
        return &cast<CallBase>(instruction).getArgOperandUse(place_of_masked);
    return place_filled(instruction);
}

bool is_writer(const Instruction &instruction) {
    const Use *place = place_written(const_cast<Instruction &>(instruction));
    return place && !is_counter(*place);
}

MemoryLocation written_by(const Instruction &writer) {
    if (const auto *store = dyn_cast<StoreInst>(&writer))
        return MemoryLocation::get(store);
    if (const auto *intrinsic = dyn_cast<MemIntrinsic>(&writer))
        return MemoryLocation::getForDest(intrinsic);
    if (is_masked_store(writer))
        return MemoryLocation::getForArgument(&cast<CallBase>(writer), place_of_masked, nullptr);
    return filled_by(cast<CallBase>(writer));
}

} // namespace durumcc::ido
