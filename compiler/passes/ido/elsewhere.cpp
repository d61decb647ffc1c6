//   *to = 7;                      q = is_in_store(to) ? to : __durum_ido_written_elsewhere(thread,
//   to, 4);
//                                 *q = 7;
//   x = *from;                    if (!is_in_store(from)) __durum_ido_read_elsewhere(thread, from,
//   ...);
//                                 x = *from;
#include "ido/elsewhere.h"

#include "common/writes.h"
#include "ido/language.h"
#include "ido/refused.h"
#include "ido/runtime.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// In the store for certain, or the same in each run.
bool lasts(const Value *pointer) {
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    return all_of(objects, [](const Value *object) {
        if (const auto *variable = dyn_cast<GlobalVariable>(object))
            return variable->isConstant();
        const auto *instruction = dyn_cast<Instruction>(object);
        StringRef name = instruction ? runtime::called_by(*instruction) : "";
        return name == runtime::locals || name == runtime::global;
    });
}

// The blocks that may come behind a record of the section.
SmallPtrSet<const BasicBlock *, 16> behind_records(const Function &function, ArrayRef<Site> sites,
                                                   const Inside &inside) {
    SmallSetVector<const BasicBlock *, 16> blocks;
    for (const Site &site : sites)
        blocks.insert(site.head);
    if (inside(function.getEntryBlock().front()))
        blocks.insert(&function.getEntryBlock());
    for (unsigned i = 0; i < blocks.size(); i++)
        blocks.insert(succ_begin(blocks[i]), succ_end(blocks[i]));
    return {blocks.begin(), blocks.end()};
}

// What an instruction reads.
struct Read {
    Instruction *instruction;
    Value *start;
};

class Asker {
  public:
    Asker(Function &function, Value *thread) : module(*function.getParent()), thread(thread) {}

    void ask_for_write(const Write &write) {
        Instruction &instruction = *write.instruction;
        Value *start = write.bytes.start;
        IRBuilder<> builder(&instruction);
        Instruction *then = if_elsewhere(start, builder, instruction);
        builder.SetInsertPoint(then);
        Value *place = builder.CreateCall(runtime::declare(module, runtime::written_elsewhere),
                                          {thread, start, write.bytes.size(builder)});
        PHINode *either =
            PHINode::Create(start->getType(), 2, "", instruction.getParent()->begin());
        for (BasicBlock *from : predecessors(instruction.getParent()))
            either->addIncoming(from == then->getParent() ? place : start, from);
        if (auto *store = dyn_cast<StoreInst>(&instruction))
            store->setOperand(StoreInst::getPointerOperandIndex(), either);
        else
            cast<MemIntrinsic>(instruction).setDest(either);
    }

    void ask_for_read(const Read &read) {
        IRBuilder<> builder(read.instruction);
        builder.SetCurrentDebugLocation(read.instruction->getDebugLoc());
        Constant *message = message_at(*read.instruction, Refusal::Elsewhere, {}, builder);
        Instruction *then = if_elsewhere(read.start, builder, *read.instruction);
        builder.SetInsertPoint(then);
        builder.CreateCall(runtime::declare(module, runtime::read_elsewhere),
                           {thread, read.start, message});
    }

  private:
    // Where the code is if the memory is not in the store.
    Instruction *if_elsewhere(Value *start, IRBuilder<> &builder, Instruction &before) {
        Type *word = builder.getInt64Ty();
        Value *distance = builder.CreateSub(builder.CreatePtrToInt(start, word),
                                            runtime::store_begin(builder, thread));
        Value *is_elsewhere = builder.CreateICmpUGE(distance, runtime::store_size(builder, thread));
        MDNode *unlikely = MDBuilder(module.getContext()).createBranchWeights(1, 1000);
        return SplitBlockAndInsertIfThen(is_elsewhere, &before, false, unlikely);
    }

    Module &module;
    Value *thread;
};

} // namespace

void ask_for_memory(Function &function, ArrayRef<Site> sites, const Inside &inside, Value *thread) {
    const auto behind = behind_records(function, sites, inside);
    SmallVector<Write, 16> writes;
    SmallVector<Read, 16> reads;
    for (BasicBlock &block : function)
        for (Instruction &instruction : block) {
            if (!inside(instruction))
                continue;
            if (std::optional<Write> write = write_of(instruction, language))
                if (!lasts(write->bytes.start))
                    writes.push_back(*write);
            if (!behind.contains(&block))
                continue;
            if (auto *load = dyn_cast<LoadInst>(&instruction))
                if (!lasts(load->getPointerOperand()))
                    reads.push_back({load, load->getPointerOperand()});
            if (auto *copy = dyn_cast<MemTransferInst>(&instruction))
                if (!lasts(copy->getRawSource()))
                    reads.push_back({copy, copy->getRawSource()});
        }
    Asker asker(function, thread);
    for (const Read &read : reads)
        asker.ask_for_read(read);
    for (const Write &write : writes)
        asker.ask_for_write(write);
}

} // namespace durumcc::ido
