// Plain stores: inside of a transaction what they overwrite is logged before, outside they are made
// durable behind.
//
//   call void @__nvl_log(ptr addrspace(1) %p, i64 4)        inside
//   store i32 %x, ptr addrspace(1) %p
//   call void @__nvl_persist(ptr addrspace(1) %p, i64 4)    outside, unless -fnvl-relaxed
//
// One call announces what a loop writes densely (common/loops.cpp), or stores that follow each
// other (common/groups.cpp). What becomes durable at one place, but not in one piece, has one
// fence:
//
//   call void @__nvl_write_back(ptr addrspace(1) %p, i64 4)
//   call void @__nvl_persist(ptr addrspace(1) %q, i64 4)
//
// A loop in which nobody can look notes what it stores when that has come to a gap (cursors.h), and
// has its fence behind it.
#include "common/depths.h"
#include "common/groups.h"
#include "common/loops.h"
#include "common/writes.h"
#include "nvl/cursors.h"
#include "nvl/language.h"
#include "nvl/passes.h"
#include "nvl/runtime.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

class Durability {
  public:
    Durability(Function &function, Entry entry, const Options &options)
        : function(function), module(*function.getParent()), entry(entry), options(options) {}

    void run(const TargetLibraryInfo &library) {
        collect();
        SmallVector<Range, 4> logs, write_backs, notes;
        SmallVector<Write, 16> entered_unlogged = entered;
        // What is compiled without optimization stays as it is: its loops count in memory.
        std::optional<Loops> loops;
        if (!function.hasOptNone() && !(inside.empty() && outside.empty() && entered.empty())) {
            loops.emplace(function, library);
            for (const Range &range : loops->take_ranges(inside, Side::Before))
                call(runtime::log, range.bytes, range.location, range.before);
            for (const Range &range : loops->take_ranges(outside, Side::Behind))
                persist(range, loops->quiet_loop(*range.before->getParent()));
            logs = loops->take_ranges(entered_unlogged, Side::Before);
            if (!options.relaxed)
                for (const Range &range : loops->take_ranges(entered, Side::Behind)) {
                    const Loop *quiet = loops->quiet_loop(*range.before->getParent());
                    (quiet ? notes : write_backs).push_back(range);
                    if (quiet)
                        for (BasicBlock *exit : exits_of(*quiet))
                            exits_entered.insert(behind_phis(*exit));
                }
        }
        for (const Group &group : group(function, inside))
            log(group);
        for (const Group &group : group(function, outside))
            persist(group, loops ? loops->quiet_loop(*group.last->getParent()) : nullptr);
        for (const auto &[place, written] : fences)
            fence(place, written);

        for (const Cursor &cursor : cursors)
            cursor.follow();
        Cursor::promote(function, cursors);

        const auto asked = group(function, unknown);
        const auto logged = group(function, entered_unlogged);
        const auto persisted = group(function, entered);
        // From here on there are other blocks.
        for (const Group &group : asked) {
            Value *is_inside = is_inside_at(*group.first);
            log_if(is_inside, group);
            persist_unless(is_inside, group);
        }
        for (const Range &range : logs)
            call(runtime::log, range.bytes, range.location,
                 SplitBlockAndInsertIfThen(was_entered_inside(), range.before, false));
        for (const Group &group : logged)
            log_if(was_entered_inside(), group);
        for (const Range &range : write_backs)
            persist_unless(was_entered_inside(), range.before, {{range.bytes, range.location}});
        for (const Range &range : notes)
            call(runtime::write_back, range.bytes, range.location,
                 unless(was_entered_inside(), range.before));
        for (Instruction *exit : exits_entered)
            persist_unless(was_entered_inside(), exit, {});
        for (const Group &group : persisted)
            persist_unless(was_entered_inside(), group);
    }

  private:
    struct Written {
        Bytes bytes;
        DebugLoc location;
    };

    void collect() {
        const Depths depths(function, language);
        depths.each(function, [&](Instruction &instruction, std::optional<Depth> depth) {
            std::optional<Write> write = write_of(instruction, language);
            if (!write)
                return;
            if (entry == Entry::Inside || (depth && depth->is_inside()))
                inside.push_back(*write);
            else if (depth && depth->may_be_inside())
                unknown.push_back(*write);
            else if (entry == Entry::Unknown)
                entered.push_back(*write);
            else if (!options.relaxed)
                outside.push_back(*write);
        });
    }

    void log(const Group &group) {
        for (const Span &span : group.spans)
            if (!span.is_announced)
                call(runtime::log, span.bytes, span.first->getDebugLoc(), span.first);
    }

    void log_if(Value *is_inside, const Group &group) {
        for (const Span &span : group.spans)
            if (!span.is_announced)
                call(runtime::log, span.bytes, span.first->getDebugLoc(),
                     SplitBlockAndInsertIfThen(is_inside, span.first, false));
    }

    // In a loop only what is behind it has to find its stores durable.
    void persist(const Group &group, const Loop *quiet) {
        Instruction *behind = group.last->getNextNode();
        for (const Span &span : group.spans) {
            const DebugLoc &location = span.first->getDebugLoc();
            if (!quiet) {
                fences[behind].push_back({span.bytes, location});
                continue;
            }
            const size_t number = cursors.size();
            cursors.emplace_back(function, span.bytes, behind, location);
            for (BasicBlock *exit : exits_of(*quiet))
                ends[behind_phis(*exit)].push_back(number);
        }
        if (quiet)
            fence_behind(*quiet);
    }

    // What a loop in it has written as a range.
    void persist(const Range &range, const Loop *quiet) {
        if (!quiet) {
            fences[range.before].push_back({range.bytes, range.location});
            return;
        }
        call(runtime::write_back, range.bytes, range.location, range.before);
        fence_behind(*quiet);
    }

    void fence_behind(const Loop &quiet) {
        for (BasicBlock *exit : exits_of(quiet))
            fences[behind_phis(*exit)];
    }

    static SmallVector<BasicBlock *, 4> exits_of(const Loop &loop) {
        SmallVector<BasicBlock *, 4> exits;
        loop.getUniqueExitBlocks(exits);
        return exits;
    }

    static Instruction *behind_phis(BasicBlock &block) { return &*block.getFirstInsertionPt(); }

    void fence(Instruction *before, ArrayRef<Written> written) {
        for (size_t cursor : ends.lookup(before))
            cursors[cursor].end(before);
        if (written.empty()) {
            auto *none = ConstantPointerNull::get(PointerType::get(module.getContext(), nvm_space));
            call(runtime::persist, {none}, before->getDebugLoc(), before);
            return;
        }
        for (const Written &one : written.drop_back())
            call(runtime::write_back, one.bytes, one.location, before);
        call(runtime::persist, written.back().bytes, written.back().location, before);
    }

    void persist_unless(Value *is_inside, const Group &group) {
        SmallVector<Written, 2> written;
        for (const Span &span : group.spans)
            written.push_back({span.bytes, span.first->getDebugLoc()});
        persist_unless(is_inside, group.last->getNextNode(), written);
    }

    void persist_unless(Value *is_inside, Instruction *before, ArrayRef<Written> written) {
        if (!options.relaxed)
            fence(unless(is_inside, before), written);
    }

    static Instruction *unless(Value *is_inside, Instruction *before) {
        IRBuilder<> builder(before);
        return SplitBlockAndInsertIfThen(builder.CreateNot(is_inside), before, false);
    }

    Value *was_entered_inside() {
        if (!entered_inside)
            entered_inside = is_inside_at(*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        return entered_inside;
    }

    Value *is_inside_at(Instruction &before) {
        IRBuilder<> builder(&before);
        return language.is_inside(builder);
    }

    void call(const char *name, const Bytes &bytes, const DebugLoc &location, Instruction *before) {
        IRBuilder<> builder(before);
        builder.SetCurrentDebugLocation(location);
        builder.CreateCall(runtime::declare(module, name),
                           {bytes.first(builder), bytes.size(builder)});
    }

    Function &function;
    Module &module;
    Entry entry;
    const Options &options;
    SmallVector<Write, 16> inside;
    SmallVector<Write, 16> outside;
    // Where the function was entered, and where ways of different depths have met.
    SmallVector<Write, 16> entered;
    SmallVector<Write, 4> unknown;
    // What becomes durable before an instruction: at least what was written back till then.
    MapVector<Instruction *, SmallVector<Written, 2>> fences;
    SmallVector<Cursor, 4> cursors;
    // The cursors that end before an instruction, by number. There is a fence.
    DenseMap<Instruction *, SmallVector<size_t, 2>> ends;
    // Behind loops in which ranges are noted, where the function was not entered inside.
    SetVector<Instruction *> exits_entered;
    Value *entered_inside = nullptr;
};

} // namespace

void make_durable(Function &function, Entry entry, const Options &options,
                  const TargetLibraryInfo &library) {
    Durability(function, entry, options).run(library);
}

} // namespace durumcc::nvl
