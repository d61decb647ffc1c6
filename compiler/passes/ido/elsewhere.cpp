//   to->value = 7;         to = ask(thread, to)
//                          to->value = 7;
//   x = from->value;       ask(thread, from, ...);
//                          x = from->value;
//
// `ask` is `if (!is_in_store(to)) to = __durum_ido_written_elsewhere(thread, to)`, or the same with
// __durum_ido_read_elsewhere.
#include "ido/elsewhere.h"

#include "ido/counters.h"
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
    return is_counter(pointer) || all_of(objects, [](const Value *object) {
               if (const auto *variable = dyn_cast<GlobalVariable>(object))
                   return variable->isConstant();
               const auto *instruction = dyn_cast<Instruction>(object);
               StringRef name = instruction ? runtime::called_by(*instruction) : "";
               return name == runtime::locals || name == runtime::other_locals ||
                      name == runtime::global;
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

// In front of what the runtime does about an object that is elsewhere: a function of the module, of
// which callers keep their registers.
std::string name_of_asking(StringRef name) {
    return (name + ".ask").str();
}

FunctionCallee declare_asking(Module &module, StringRef name) {
    FunctionCallee asked = runtime::declare(module, name);
    FunctionCallee asking =
        module.getOrInsertFunction(name_of_asking(name), asked.getFunctionType());
    auto &function = cast<Function>(*asking.getCallee());
    function.setCallingConv(CallingConv::PreserveMost);
    function.setDoesNotThrow();
    return asking;
}

// A place that reads or writes an object, by a pointer into it.
struct Access {
    Instruction *instruction;
    Value *pointer;
    bool is_write;

    Value *object() const { return const_cast<Value *>(getUnderlyingObject(pointer, 0)); }
};

// All of an object is in the store, or nothing. So the first place that comes to it asks, and those
// know that come behind it without a record between: what was allowed in front of the section's
// first record is asked for again behind it.
class Asker {
  public:
    Asker(Module &module, ArrayRef<Site> sites, Value *thread) : module(module), thread(thread) {
        for (const Site &site : sites)
            heads.insert(site.head);
    }

    void ask(const Access &access) {
        Value *answer = known_answer(access);
        if (!answer)
            answer =
                answers[{access.instruction->getParent(), {access.object(), access.is_write}}] =
                    call(access);
        if (access.is_write)
            move(access, answer);
    }

  private:
    // Of its block, or of those that each way to it comes from.
    Value *known_answer(const Access &access) const {
        constexpr unsigned most_blocks = 16;
        const BasicBlock *block = access.instruction->getParent();
        for (unsigned i = 0; block && i < most_blocks; i++) {
            auto found = answers.find({block, {access.object(), access.is_write}});
            if (found != answers.end())
                return found->second;
            block = heads.contains(block) ? nullptr : block->getSinglePredecessor();
        }
        return nullptr;
    }

    // For a write, this is where to write instead.
    CallInst *call(const Access &access) {
        IRBuilder<> builder(access.instruction);
        CallInst *call;
        if (access.is_write) {
            call = builder.CreateCall(declare_asking(module, runtime::written_elsewhere),
                                      {thread, access.object()});
        } else {
            Constant *place = place_of(*access.instruction, Refusal::Elsewhere, {});
            call = builder.CreateCall(declare_asking(module, runtime::read_elsewhere),
                                      {thread, access.object(), place});
        }
        call->setCallingConv(CallingConv::PreserveMost);
        return call;
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

    Module &module;
    Value *thread;
    SmallPtrSet<const BasicBlock *, 16> heads;
    DenseMap<std::pair<const BasicBlock *, std::pair<const Value *, unsigned>>, Value *> answers;
};

// The pointers of a gather. What its mask leaves out leads anywhere: the store's begin is asked for
// instead.
SmallVector<Value *, 8> pointers_of(IntrinsicInst &gather, Value *thread) {
    IRBuilder<> builder(&gather);
    Value *pointers = gather.getArgOperand(0), *mask = gather.getArgOperand(2);
    Value *begin =
        builder.CreateIntToPtr(runtime::store_begin(builder, thread), builder.getPtrTy());
    SmallVector<Value *, 8> asked;
    for (unsigned i = 0; i < cast<FixedVectorType>(pointers->getType())->getNumElements(); i++)
        asked.push_back(builder.CreateSelect(builder.CreateExtractElement(mask, i),
                                             builder.CreateExtractElement(pointers, i), begin));
    return asked;
}

// Looks where the object is, and calls the runtime if it is not in the store.
void define_asking(Function &function, StringRef name) {
    LLVMContext &context = function.getContext();
    auto *entry = BasicBlock::Create(context, "", &function);
    auto *elsewhere = BasicBlock::Create(context, "elsewhere", &function);
    auto *in_store = BasicBlock::Create(context, "in_store", &function);
    IRBuilder<> builder(entry);
    Value *thread = function.getArg(0);
    Value *object = function.getArg(1);
    Value *distance = builder.CreateSub(builder.CreatePtrToInt(object, builder.getInt64Ty()),
                                        runtime::store_begin(builder, thread));
    Value *is_elsewhere = builder.CreateICmpUGE(distance, runtime::store_size(builder, thread));
    MDNode *unlikely = MDBuilder(context).createBranchWeights(1, 1000);
    builder.CreateCondBr(is_elsewhere, elsewhere, in_store, unlikely);
    const bool has_result = !function.getReturnType()->isVoidTy();
    builder.SetInsertPoint(elsewhere);
    SmallVector<Value *, 3> arguments;
    for (Argument &argument : function.args())
        arguments.push_back(&argument);
    Value *result = builder.CreateCall(runtime::declare(*function.getParent(), name), arguments);
    has_result ? builder.CreateRet(result) : builder.CreateRetVoid();
    builder.SetInsertPoint(in_store);
    has_result ? builder.CreateRet(object) : builder.CreateRetVoid();
    function.setLinkage(GlobalValue::InternalLinkage);
}

} // namespace

void ask_for_memory(Function &function, ArrayRef<Site> sites, const Inside &inside, Value *thread) {
    const auto behind = behind_records(function, sites, inside);
    SmallVector<Access, 32> accesses;
    auto add = [&](Instruction &instruction, Value *pointer, bool is_write) {
        if (!lasts(pointer))
            accesses.push_back({&instruction, pointer, is_write});
    };
    auto add_all = [&](CallInst &call, Value *read) {
        const bool is_gather = read->getType()->isVectorTy();
        // The parts of an array are in the store as a whole.
        if (!is_gather || !getUnderlyingObject(read, 0)->getType()->isVectorTy())
            return add(call, read, false);
        for (Value *pointer : pointers_of(cast<IntrinsicInst>(call), thread))
            add(call, pointer, false);
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
                        add_all(*call, read);
        }
    Asker asker(*function.getParent(), sites, thread);
    for (const Access &access : accesses)
        asker.ask(access);
}

void define_asking(Module &module) {
    for (const char *name : {runtime::written_elsewhere, runtime::read_elsewhere})
        if (Function *function = module.getFunction(name_of_asking(name)))
            define_asking(*function, name);
}

} // namespace durumcc::ido
