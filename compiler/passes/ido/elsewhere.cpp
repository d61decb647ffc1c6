//   to->value = 7;         if (!is_in_store(to)) to = __durum_ido_written_elsewhere(thread, to);
//                          to->value = 7;
//   x = from->value;       if (!is_in_store(from)) __durum_ido_read_elsewhere(thread, from, ...);
//                          x = from->value;
#include "ido/elsewhere.h"

#include "ido/library.h"
#include "ido/refused.h"
#include "ido/runtime.h"
#include "ido/writers.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
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
        return name == runtime::locals || name == runtime::other_locals || name == runtime::global;
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

// A place that reads or writes an object, by a pointer into it.
struct Access {
    Instruction *instruction;
    Value *pointer;
    bool is_write;

    Value *object() const { return const_cast<Value *>(getUnderlyingObject(pointer, 0)); }
};

// All of an object is in the store, or nothing. So the first place of a block that comes to it
// asks, and those behind it know: in no block a record is made behind its begin, so what was
// allowed in front of the section's first record is asked for again behind it.
class Asker {
  public:
    Asker(Module &module, Value *thread) : module(module), thread(thread) {}

    void ask(ArrayRef<Access> accesses) {
        // Which ones ask is found out before there are other blocks.
        SmallVector<const Access *, 16> asking;
        DenseMap<const Access *, const Access *> answers;
        for (const Access &access : accesses) {
            auto stands_for = [&](const Access *earlier) {
                return earlier->is_write == access.is_write &&
                       earlier->object() == access.object() &&
                       earlier->instruction->getParent() == access.instruction->getParent();
            };
            const auto *found = find_if(asking, stands_for);
            answers[&access] = found == asking.end() ? &access : *found;
            if (found == asking.end())
                asking.push_back(&access);
        }
        DenseMap<const Access *, Value *> places;
        for (const Access *access : asking)
            if (access->is_write)
                places[access] = ask_for_write(*access);
            else
                ask_for_read(*access);
        for (const Access &access : accesses)
            if (access.is_write)
                move(access, places[answers[&access]]);
    }

  private:
    // Where to write instead of to the object.
    Value *ask_for_write(const Access &access) {
        Value *object = access.object();
        Instruction *then = if_elsewhere(*access.instruction, object);
        IRBuilder<> builder(then);
        Value *place = builder.CreateCall(runtime::declare(module, runtime::written_elsewhere),
                                          {thread, object});
        BasicBlock *behind = access.instruction->getParent();
        PHINode *either = PHINode::Create(object->getType(), 2, "", behind->begin());
        for (BasicBlock *from : predecessors(behind))
            either->addIncoming(from == then->getParent() ? place : object, from);
        return either;
    }

    void move(const Access &access, Value *object) {
        IRBuilder<> builder(access.instruction);
        APInt offset(64, 0);
        Value *distance;
        if (access.pointer->stripAndAccumulateConstantOffsets(module.getDataLayout(), offset,
                                                              true) == access.object())
            distance = builder.getInt(offset);
        else
            distance =
                builder.CreateSub(builder.CreatePtrToInt(access.pointer, builder.getInt64Ty()),
                                  builder.CreatePtrToInt(access.object(), builder.getInt64Ty()));
        Value *place = builder.CreatePtrAdd(object, distance);
        place_written(*access.instruction)->set(place);
    }

    void ask_for_read(const Access &access) {
        Constant *place = place_of(*access.instruction, Refusal::Elsewhere, {});
        Instruction *then = if_elsewhere(*access.instruction, access.object());
        IRBuilder<> builder(then);
        builder.CreateCall(runtime::declare(module, runtime::read_elsewhere),
                           {thread, access.object(), place});
    }

    // Where the code is if the object is not in the store.
    Instruction *if_elsewhere(Instruction &before, Value *object) {
        IRBuilder<> builder(&before);
        Type *word = builder.getInt64Ty();
        Value *distance = builder.CreateSub(builder.CreatePtrToInt(object, word),
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
    SmallVector<Access, 32> accesses;
    auto add = [&](Instruction &instruction, Value *pointer, bool is_write) {
        if (!lasts(pointer))
            accesses.push_back({&instruction, pointer, is_write});
    };
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
        for (Instruction &instruction : *block) {
            if (!inside(instruction))
                continue;
            if (const Use *place = place_written(instruction))
                add(instruction, place->get(), true);
            if (!behind.contains(block))
                continue;
            if (auto *load = dyn_cast<LoadInst>(&instruction))
                add(instruction, load->getPointerOperand(), false);
            if (auto *copy = dyn_cast<MemTransferInst>(&instruction))
                add(instruction, copy->getRawSource(), false);
            if (Value *read = runtime::read_by(instruction))
                add(instruction, read, false);
            if (auto *call = dyn_cast<CallInst>(&instruction))
                if (may_be_repeated(*call) && !runtime::is_check(*call))
                    for (Value *read : read_by(*call))
                        add(instruction, read, false);
        }
    Asker(*function.getParent(), thread).ask(accesses);
}

} // namespace durumcc::ido
