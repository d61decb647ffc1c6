// Plain stores: inside of a transaction what they overwrite is logged before, outside they are made
// durable behind.
//
//   call void @__nvl_log(ptr addrspace(1) %p, i64 4)        inside
//   store i32 %x, ptr addrspace(1) %p
//   call void @__nvl_persist(ptr addrspace(1) %p, i64 4)    outside, unless -fnvl-relaxed
#include "depths.h"
#include "passes.h"
#include "runtime.h"
#include "writes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace nvl {
namespace {

using namespace llvm;

class Durability {
  public:
    Durability(Function &function, Entry entry, const Options &options)
        : function(function), module(*function.getParent()), entry(entry), options(options) {}

    void run() {
        collect();
        for (const Write &write : inside)
            log(write);
        for (const Write &write : outside)
            persist(write);
        for (const Write &write : unknown)
            decide(write);
    }

  private:
    void collect() {
        Depths(function).each(function, [&](Instruction &instruction, std::optional<int> depth) {
            std::optional<Write> write = write_of(instruction);
            if (!write)
                return;
            if (entry == Entry::Inside || (depth && *depth > 0))
                inside.push_back(*write);
            else if (depth && entry == Entry::Outside)
                outside.push_back(*write);
            else
                unknown.push_back(*write);
        });
    }

    void log(const Write &write) {
        if (!write.is_announced)
            call(runtime::log, write, write.instruction);
    }

    void persist(const Write &write) {
        if (!options.is_relaxed)
            call(runtime::persist, write, write.instruction->getNextNode());
    }

    // Only when the program runs it turns out where it is: __nvl_log does nothing outside.
    void decide(const Write &write) {
        log(write);
        if (options.is_relaxed)
            return;
        IRBuilder<> builder(write.instruction->getNextNode());
        Value *place = builder.CreateCall(runtime::declare(module, runtime::tx_depth), {});
        Value *depth = builder.CreateLoad(builder.getInt32Ty(), place);
        Value *is_outside = builder.CreateICmpEQ(depth, builder.getInt32(0));
        call(runtime::persist, write,
             SplitBlockAndInsertIfThen(is_outside, &*builder.GetInsertPoint(), false));
    }

    void call(const char *name, const Write &write, Instruction *before) {
        IRBuilder<> builder(before);
        builder.SetCurrentDebugLocation(write.instruction->getDebugLoc());
        builder.CreateCall(runtime::declare(module, name), {write.start, write.size(builder)});
    }

    Function &function;
    Module &module;
    Entry entry;
    const Options &options;
    SmallVector<Write, 16> inside;
    SmallVector<Write, 16> outside;
    SmallVector<Write, 4> unknown;
};

} // namespace

void make_durable(Function &function, Entry entry, const Options &options) {
    Durability(function, entry, options).run();
}

} // namespace nvl
