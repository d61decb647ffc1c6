#include "ido/resume.h"

#include "ido/globals.h"
#include "ido/instrument.h"
#include "ido/runtime.h"
#include "locks/calls.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// Who resumes has no arguments, and gets no result where the section ends. How an argument is
// passed in memory stays.
void forget_promises(Function &function) {
    AttributeMask promises;
    for (Attribute::AttrKind kind :
         {Attribute::NoUndef, Attribute::NonNull, Attribute::Dereferenceable,
          Attribute::DereferenceableOrNull, Attribute::Alignment, Attribute::Range,
          Attribute::NoAlias, Attribute::Returned, Attribute::NoFPClass, Attribute::AllocSize})
        promises.addAttribute(kind);
    function.removeRetAttrs(promises);
    AttributeMask in_memory;
    in_memory.addAttribute(Attribute::NoUndef);
    for (Argument &argument : function.args())
        function.removeParamAttrs(argument.getArgNo(),
                                  argument.getPointeeInMemoryValueType() ? in_memory : promises);
}

class Resumer {
  public:
    Resumer(Function &function, ArrayRef<Site> sites, const Inside &inside, Value *thread,
            GlobalVariable &regions, AllocaInst &words)
        : module(*function.getParent()), function(function), sites(sites), inside(inside),
          thread(cast<Instruction>(thread)), regions(regions), words(words) {}

    void make() {
        forget_promises(function);
        end_sections();
        make_entry();
        name_arguments();
        make_slots();
        for (const auto &[i, site] : enumerate(sites)) {
            ways->addCase(
                cast<ConstantInt>(ConstantInt::get(ways->getCondition()->getType(), i + 1)),
                way_to(site));
            reload(site);
        }
        promote();
        for (Instruction *load : reloads)
            RecursivelyDeleteTriviallyDeadInstructions(load);
    }

  private:
    // In front of the old one, with what code behind any entry asks the runtime for.
    void make_entry() {
        LLVMContext &context = module.getContext();
        BasicBlock *first = &function.getEntryBlock();
        entry = BasicBlock::Create(context, "", &function, first);
        resumed = BasicBlock::Create(context, "resumed", &function);
        words.moveBefore(*entry, entry->end());
        thread->moveBefore(*entry, entry->end());
        ask_early(function, entry->end());
        IRBuilder<> builder(entry);
        Value *region = runtime::region(builder, thread);
        MDNode *unlikely = MDBuilder(context).createBranchWeights(1, 1000);
        builder.CreateCondBr(builder.CreateIsNotNull(region), resumed, first, unlikely);
        builder.SetInsertPoint(resumed);
        region = builder.CreateCall(runtime::declare(module, runtime::enter),
                                    {thread, &regions, &words});
        BasicBlock *none = BasicBlock::Create(context, "none", &function);
        new UnreachableInst(context, none);
        ways = builder.CreateSwitch(region, none, sites.size());
    }

    // An argument is a value like others, that a region may bring along.
    void name_arguments() {
        IRBuilder<> builder(&*entry->getTerminator()->getSuccessor(1)->getFirstInsertionPt());
        for (Argument &argument : function.args()) {
            if (!is_live_in(argument))
                continue;
            auto *named = cast<Instruction>(builder.CreateFreeze(&argument));
            argument.replaceUsesWithIf(named,
                                       [&](const Use &use) { return use.getUser() != named; });
            names[&argument] = named;
        }
    }

    bool is_live_in(const Value &value) const {
        return any_of(sites, [&](const Site &site) {
            return is_contained(site.live_ins, &value) || is_contained(site.not_needed, &value);
        });
    }

    Instruction *named(const Value *value) const {
        if (const auto *argument = dyn_cast<Argument>(value))
            return names.lookup(argument);
        return const_cast<Instruction *>(cast<Instruction>(value));
    }

    // Variables of values that come to a region by two ways.
    void make_slots() {
        auto make = [&](const Value *value) {
            if (slots.contains(value))
                return;
            Instruction *one = named(value);
            // A result that nobody uses is live nowhere.
            slots[value] = one->use_empty()
                               ? nullptr
                               : DemoteRegToStack(*one, false, entry->getFirstInsertionPt());
        };
        for (const Site &site : sites) {
            for (const Value *value : site.live_ins)
                make(value);
            for (const Value *value : site.not_needed)
                make(value);
            if (has_result(site))
                make(site.place);
        }
    }

    static bool has_result(const Site &site) {
        return site.kind == Site::Return && !site.place->getType()->isVoidTy();
    }

    // What the call has returned, who resumes knows.
    BasicBlock *way_to(const Site &site) {
        AllocaInst *slot = has_result(site) ? slots.lookup(site.place) : nullptr;
        if (!slot)
            return site.head;
        BasicBlock *block = BasicBlock::Create(module.getContext(), "resume", &function);
        IRBuilder<> builder(block);
        builder.CreateStore(builder.CreateAlignedLoad(slot->getAllocatedType(),
                                                      runtime::result(builder, thread), Align(8)),
                            slot);
        builder.CreateBr(site.head);
        return block;
    }

    // Each region begins with its live-ins, which lie in one place whoever has put them there.
    void reload(const Site &site) {
        IRBuilder<> builder(site.head, site.head->getFirstInsertionPt());
        uint64_t offset = 0;
        for (const auto &[value, size] : zip(site.live_ins, site.sizes)) {
            Value *place = runtime::at(builder, words, offset);
            offset += size;
            AllocaInst *slot = slots.lookup(value);
            if (!slot)
                continue;
            reloads.push_back(builder.CreateAlignedLoad(slot->getAllocatedType(), place, Align(8)));
            builder.CreateStore(reloads.back(), slot);
        }
    }

    // Behind the last release there is nothing to complete, wherever it was: what a function has
    // called comes back in its middle then.
    void end_sections() {
        SmallVector<CallBase *, 4> releases;
        for (Instruction &instruction : instructions(function)) {
            std::optional<locks::Action> action = locks::action_of(instruction);
            if (inside(instruction) &&
                (action == locks::Action::Release || action == locks::Action::End ||
                 action == locks::Action::Wait))
                releases.push_back(cast<CallBase>(&instruction));
        }
        for (const Site &site : sites)
            if (site.kind == Site::Return)
                releases.push_back(cast<CallBase>(site.place));
        for (CallBase *release : releases)
            end_behind(*release);
    }

    void end_behind(CallBase &call) {
        Instruction *next = isa<InvokeInst>(call)
                                ? &*cast<InvokeInst>(call).getNormalDest()->getFirstInsertionPt()
                                : call.getNextNode();
        BasicBlock *block = next->getParent();
        BasicBlock *rest = SplitBlock(block, next);
        block->getTerminator()->eraseFromParent();
        IRBuilder<> builder(block);
        MDNode *unlikely = MDBuilder(module.getContext()).createBranchWeights(1, 1000);
        builder.CreateCondBr(runtime::has_completed(builder, thread), end(), rest, unlikely);
    }

    BasicBlock *end() {
        if (!ended) {
            ended = BasicBlock::Create(module.getContext(), "ended", &function);
            IRBuilder<> builder(ended);
            Type *type = function.getReturnType();
            type->isVoidTy() ? builder.CreateRetVoid()
                             : builder.CreateRet(Constant::getNullValue(type));
        }
        return ended;
    }

    void promote() {
        DominatorTree dominators(function);
        SmallVector<AllocaInst *, 16> promotable;
        for (Instruction &instruction : *entry)
            if (auto *slot = dyn_cast<AllocaInst>(&instruction))
                if (isAllocaPromotable(slot))
                    promotable.push_back(slot);
        PromoteMemToReg(promotable, dominators);
    }

    Module &module;
    Function &function;
    const ArrayRef<Site> sites;
    const Inside &inside;
    Instruction *thread;
    GlobalVariable &regions;
    AllocaInst &words;
    BasicBlock *entry = nullptr;
    BasicBlock *resumed = nullptr;
    BasicBlock *ended = nullptr;
    SwitchInst *ways = nullptr;
    DenseMap<const Argument *, Instruction *> names;
    // Null for what has no use.
    MapVector<const Value *, AllocaInst *> slots;
    SmallVector<LoadInst *, 16> reloads;
};

// How an argument is passed, if that is in memory.
AttributeSet in_memory_of(const Argument &argument) {
    return argument.getPointeeInMemoryValueType()
               ? argument.getParent()->getAttributes().getParamAttrs(argument.getArgNo())
               : AttributeSet();
}

// The same for all that are called in one way.
std::string name_of_caller(const Function &function) {
    std::string name = "__durum_ido_resume.";
    raw_string_ostream out(name);
    out << function.getCallingConv() << " ";
    function.getFunctionType()->print(out);
    for (const Argument &argument : function.args())
        if (AttributeSet passed = in_memory_of(argument); passed.hasAttributes())
            out << " " << argument.getArgNo() << ": " << passed.getAsString();
    return name;
}

} // namespace

void make_resumable(Function &function, ArrayRef<Site> sites, const Inside &inside, Value *thread,
                    GlobalVariable &regions, AllocaInst &words) {
    Resumer(function, sites, inside, thread, regions, words).make();
}

Function *caller_of(const Function &function) {
    Module &module = *const_cast<Module *>(function.getParent());
    LLVMContext &context = module.getContext();
    const std::string name = name_of_caller(function);
    if (Function *caller = module.getFunction(name))
        return caller;
    Type *pointer = PointerType::get(context, 0);
    auto *type = FunctionType::get(Type::getVoidTy(context),
                                   {pointer, Type::getInt32Ty(context), pointer, pointer}, false);
    Function *caller = Function::Create(type, GlobalValue::InternalLinkage,
                                        function.getAddressSpace(), name, &module);
    caller->addFnAttr(Attribute::NoInline);
    caller->addFnAttr(Attribute::Cold);
    IRBuilder<> builder(BasicBlock::Create(context, "", caller));
    Value *thread = builder.CreateCall(runtime::declare(module, runtime::thread), {});
    runtime::enter_at(builder, thread, caller->getArg(0), caller->getArg(1), caller->getArg(2));
    SmallVector<Value *, 8> arguments;
    for (const Argument &argument : function.args()) {
        Type *in_memory = argument.getPointeeInMemoryValueType();
        arguments.push_back(in_memory ? builder.CreateAlloca(in_memory)
                                      : builder.CreateFreeze(PoisonValue::get(argument.getType())));
    }
    CallInst *call = builder.CreateCall(function.getFunctionType(), caller->getArg(3), arguments);
    call->setCallingConv(function.getCallingConv());
    for (const Argument &argument : function.args())
        call->setAttributes(call->getAttributes().addParamAttributes(
            context, argument.getArgNo(), AttrBuilder(context, in_memory_of(argument))));
    if (!call->getType()->isVoidTy())
        builder.CreateAlignedStore(call, caller->getArg(2), Align(8));
    builder.CreateRetVoid();
    return caller;
}

} // namespace durumcc::ido
