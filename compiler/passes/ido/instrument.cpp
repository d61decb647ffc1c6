//   x = p->value;                 x = p->value;
//                                 words[0] = p, words[1] = x;
//                                 __durum_ido_record(thread, &regions[2], words);
//   p->value = x + 1;             p->value = x + 1;
//                                 __durum_ido_wrote(thread, &p->value, 8);
#include "ido/instrument.h"

#include "common/groups.h"
#include "ido/language.h"
#include "ido/library.h"
#include "ido/runtime.h"
#include "locks/calls.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

#include <numeric>

namespace durumcc::ido {
namespace {

using namespace llvm;

constexpr uint64_t word = 8;

// struct __durum_ido_region: where the code goes on, a line, words of live-ins, flags, and a bit
// for each word that is an address.
StructType *region_type(LLVMContext &context) {
    Type *word = Type::getInt64Ty(context);
    Type *number = Type::getInt32Ty(context);
    Type *half = Type::getInt16Ty(context);
    return StructType::get(context, {word, number, half, half, word, word});
}

// A call that may come back with more locks: it needs its frame outside of sections, too.
constexpr unsigned begins_section = 1;
// A region that needs the function's own locals, wherever they are.
constexpr unsigned needs_locals = 2;
// A region in which others may store where the section has stored before: it lets a lock go, or
// tells others of what it has done.
constexpr unsigned hands_over = 4;

bool tells_others(const Instruction &instruction) {
    const auto *store = dyn_cast<StoreInst>(&instruction);
    return store && (store->isAtomic() || store->isVolatile());
}

class Instrumenter {
  public:
    Instrumenter(Function &function, ArrayRef<Site> sites, Value *thread, GlobalVariable &table)
        : module(*function.getParent()), function(function), sites(sites), thread(thread),
          table(table) {}

    AllocaInst *run() {
        make_words();
        for (unsigned i = 0; i < sites.size(); i++)
            sites[i].kind == Site::Return ? push_frame(i) : record(i);
        for (const auto &[pad, frames] : unwound)
            pop_frames(*pad, frames);
        return words;
    }

  private:
    // Frames, by the invokes that they are around.
    using FramesOf = DenseMap<const Instruction *, Value *>;

    // On the thread's own stack: the runtime has copied them when it returns.
    void make_words() {
        uint64_t bytes = 0;
        for (const Site &site : sites)
            bytes = std::max(bytes, std::accumulate(site.sizes.begin(), site.sizes.end(), 0ul));
        IRBuilder<> builder(&function.getEntryBlock(), function.getEntryBlock().begin());
        words = builder.CreateAlloca(ArrayType::get(builder.getInt64Ty(), bytes / word), nullptr,
                                     "words");
        words->setAlignment(Align(word));
    }

    Constant *region(size_t number) {
        LLVMContext &context = function.getContext();
        Type *index = Type::getInt64Ty(context);
        return ConstantExpr::getInBoundsGetElementPtr(
            table.getValueType(), &table,
            ArrayRef<Constant *>{ConstantInt::get(index, 0), ConstantInt::get(index, number)});
    }

    // What the region needs, when its block begins.
    void record(unsigned number) {
        const Site &site = sites[number];
        IRBuilder<> builder(site.head->getSinglePredecessor()->getTerminator());
        builder.SetCurrentDebugLocation(site.place->getDebugLoc());
        save(site, builder);
        auto call = [&](const char *name, ArrayRef<Value *> more = {}) {
            SmallVector<Value *, 4> arguments{thread, region(number), words};
            arguments.append(more.begin(), more.end());
            builder.CreateCall(runtime::declare(module, name), arguments);
        };
        switch (site.kind) {
        case Site::Store:
            return call(runtime::record);
        case Site::Word:
            return call(runtime::record_word);
        case Site::Release: {
            const auto &release = cast<CallBase>(*site.place);
            Value *lock = const_cast<Value *>(locks::lock_of(release));
            if (!lock)
                lock = ConstantPointerNull::get(builder.getPtrTy());
            return call(runtime::record_release, {in_front(*lock, *site.head, builder)});
        }
        case Site::Call:
            // With the frame, which comes next.
            return;
        case Site::Return:
            break;
        }
        llvm_unreachable("frames are no records");
    }

    // What a block derives for itself (sites.cpp), in front of it.
    static Value *in_front(Value &value, const BasicBlock &block, IRBuilder<> &builder) {
        auto *instruction = dyn_cast<Instruction>(&value);
        if (!instruction || instruction->getParent() != &block)
            return &value;
        Instruction *again = instruction->clone();
        for (Use &operand : again->operands())
            operand.set(in_front(*operand, block, builder));
        return builder.Insert(again);
    }

    void push_frame(unsigned number) {
        const Site &site = sites[number];
        IRBuilder<> builder(site.place);
        builder.SetCurrentDebugLocation(site.place->getDebugLoc());
        Constant *of_call = ConstantPointerNull::get(builder.getPtrTy());
        if (has_call(sites, number))
            of_call = region(number - 1);
        else
            save(site, builder);
        Value *frame = builder.CreateCall(runtime::declare(module, runtime::call),
                                          {thread, of_call, region(number), words});
        // In the block between the call and the region.
        BasicBlock *behind = site.head->getSinglePredecessor();
        IRBuilder<> popping(behind->getTerminator());
        popping.SetCurrentDebugLocation(site.place->getDebugLoc());
        popping.CreateCall(runtime::declare(module, runtime::returned), {thread, frame});
        if (auto *invoke = dyn_cast<InvokeInst>(site.place))
            unwound[invoke->getUnwindDest()][invoke] = frame;
    }

    // An exception leaves the frame of its call, and all above.
    void pop_frames(BasicBlock &pad, const FramesOf &frames) {
        IRBuilder<> builder(&pad, pad.begin());
        PHINode *frame = builder.CreatePHI(builder.getPtrTy(), pred_size(&pad), "frame");
        for (BasicBlock *from : predecessors(&pad)) {
            Value *own = frames.lookup(from->getTerminator());
            frame->addIncoming(own ? own : ConstantPointerNull::get(builder.getPtrTy()), from);
        }
        builder.SetInsertPoint(&pad, pad.getFirstInsertionPt());
        builder.CreateCall(runtime::declare(module, runtime::returned), {thread, frame});
    }

    void save(const Site &site, IRBuilder<> &builder) {
        uint64_t offset = 0;
        for (const auto &[value, size] : zip(site.live_ins, site.sizes)) {
            builder.CreateAlignedStore(value, runtime::at(builder, *words, offset), Align(word));
            offset += size;
        }
    }

    Module &module;
    Function &function;
    const ArrayRef<Site> sites;
    Value *thread;
    GlobalVariable &table;
    AllocaInst *words = nullptr;
    // By the blocks where exceptions of these calls come to.
    MapVector<BasicBlock *, FramesOf> unwound;
};

} // namespace

GlobalVariable *declare_regions(Function &function, size_t count) {
    Type *type = ArrayType::get(region_type(function.getContext()), count);
    return new GlobalVariable(*function.getParent(), type, true, GlobalValue::PrivateLinkage,
                              nullptr, "__durum_ido_regions." + function.getName());
}

void define_regions(const Function &function, GlobalVariable &table, ArrayRef<Site> sites,
                    uint64_t hash) {
    const bool is_told = any_of(instructions(function), tells_others);
    LLVMContext &context = table.getContext();
    StructType *type = region_type(context);
    SmallVector<Constant *, 16> regions;
    for (const auto &[i, site] : enumerate(sites)) {
        uint64_t words = 0;
        uint64_t addresses[2] = {0, 0};
        for (const auto &[value, size] : zip(site.live_ins, site.sizes)) {
            if (value->getType()->isPointerTy() && words < 128)
                addresses[words / 64] |= uint64_t(1) << words % 64;
            words += size / word;
        }
        const DILocation *location = site.place->getDebugLoc().get();
        const unsigned flags = (site.begins_section ? begins_section : 0) |
                               (site.needs_locals ? needs_locals : 0) |
                               (is_told || site.kind == Site::Release ? hands_over : 0);
        regions.push_back(ConstantStruct::get(
            type, {ConstantInt::get(type->getElementType(0), hash << 16 | (i + 1)),
                   ConstantInt::get(type->getElementType(1), location ? location->getLine() : 0),
                   ConstantInt::get(type->getElementType(2), words),
                   ConstantInt::get(type->getElementType(3), flags),
                   ConstantInt::get(type->getElementType(4), addresses[0]),
                   ConstantInt::get(type->getElementType(5), addresses[1])}));
    }
    table.setInitializer(ConstantArray::get(cast<ArrayType>(table.getValueType()), regions));
}

void announce_stores(Function &function, const Inside &inside, Value *thread) {
    SmallVector<Write, 16> writes;
    SmallVector<CallBase *, 4> filling;
    for (BasicBlock &block : function)
        for (Instruction &instruction : block) {
            if (!inside(instruction))
                continue;
            if (std::optional<Write> write = write_of(instruction, language))
                writes.push_back(*write);
            if (place_filled(instruction))
                filling.push_back(cast<CallBase>(&instruction));
        }
    Module &module = *function.getParent();
    for (CallBase *call : filling) {
        IRBuilder<> builder(call->getNextNode());
        builder.SetCurrentDebugLocation(call->getDebugLoc());
        builder.CreateCall(runtime::declare(module, runtime::wrote),
                           {thread, place_filled(*call)->get(), size_filled(*call, builder)});
    }
    for (const Group &group : group(function, writes)) {
        IRBuilder<> builder(group.last->getNextNode());
        for (const Span &span : group.spans) {
            builder.SetCurrentDebugLocation(span.first->getDebugLoc());
            builder.CreateCall(runtime::declare(module, runtime::wrote),
                               {thread, span.bytes.first(builder), span.bytes.size(builder)});
        }
    }
}

AllocaInst *instrument(Function &function, ArrayRef<Site> sites, Value *thread,
                       GlobalVariable &table) {
    return Instrumenter(function, sites, thread, table).run();
}

} // namespace durumcc::ido
