#include "ido/sites.h"

#include "ido/library.h"
#include "ido/locals.h"
#include "ido/report.h"
#include "ido/counters.h"
#include "ido/runtime.h"
#include "ido/sanitizers.h"
#include "locks/calls.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

constexpr uint64_t word = 8;

class Maker {
  public:
    Maker(Function &function, const Inside &inside, const locks::Held &held)
        : function(function), inside(inside), held(held) {}

    SmallVector<Site, 16> make(FunctionAnalysisManager &analyses, Omitted &omitted) {
        const auto conflicts = conflicts_in(function, inside, analyses, omitted);
        for (const Cut &cut : cuts_for(conflicts, function, analyses)) {
            add(is_last_word(*cut.place, omitted) ? Site::Word : Site::Store, *cut.place);
            sites.back().reason = reason_in_report(cut.conflict);
        }
        for (BasicBlock &block : function)
            for (Instruction &instruction : block)
                if (auto *call = dyn_cast<CallBase>(&instruction))
                    look_at(*call);
        make_blocks_of_sites();
        return std::move(sites);
    }

  private:
    // Whether nothing but this store of a word comes before a lock is let go, on each way.
    bool is_last_word(const Instruction &place, const Omitted &omitted) const {
        // What others see without the lock is completed: they may have stored what follows from it.
        const auto *store = dyn_cast<StoreInst>(&place);
        if (!store || (store->isAtomic() && !omitted.words))
            return false;
        const uint64_t size =
            function.getDataLayout().getTypeStoreSize(store->getValueOperand()->getType());
        if (size > 8 || !isPowerOf2_64(size) || store->getAlign() < size)
            return false;
        SmallSetVector<const BasicBlock *, 8> blocks;
        auto only_reads_from = [&](BasicBlock::const_iterator one) {
            for (;; ++one) {
                std::optional<locks::Action> action = locks::action_of(*one);
                if (action == locks::Action::Release || action == locks::Action::End)
                    return true;
                if (!inside(*one) || !may_be_repeated(*one) || one->mayWriteToMemory())
                    return false;
                if (one->isTerminator())
                    return blocks.insert(succ_begin(one->getParent()), succ_end(one->getParent())),
                           true;
            }
        };
        if (!only_reads_from(std::next(store->getIterator())))
            return false;
        for (unsigned i = 0; i < blocks.size(); i++)
            if (!only_reads_from(blocks[i]->begin()))
                return false;
        return true;
    }

    void look_at(CallBase &call) {
        std::optional<locks::Action> action = locks::action_of(call);
        // std::lock is code of the module's, which takes its locks one after the other.
        if (action && action != locks::Action::TakeAll) {
            if (inside(call) && !inside(next_of(call)))
                section_ends.push_back(&next_of(call));
            // Where a region ends that no lock guards, nobody can tell before the section ends.
            if (action == locks::Action::Release && inside.depth(call).max > 1)
                add(Site::Release, call);
            return;
        }
        if (!leads_to_code(call))
            return;
        std::optional<Depth> change =
            isa<InvokeInst>(call) ? held.change_to(call, 0) : held.change(call);
        const bool begins_section = change && change->max > 0;
        if (!inside(call) && !begins_section)
            return;
        if (inside(call))
            add(Site::Call, call);
        add(Site::Return, call);
        sites.back().begins_section = begins_section;
    }

    static Instruction &next_of(CallBase &call) {
        if (auto *invoke = dyn_cast<InvokeInst>(&call))
            return *invoke->getNormalDest()->getFirstInsertionPt();
        return *call.getNextNode();
    }

    void add(Site::Kind kind, Instruction &place) {
        sites.push_back({kind, &place, inside.depth(place).is_inside()});
    }

    // What comes behind a call first, as another one may begin there.
    void make_blocks_of_sites() {
        for (Site &site : sites) {
            if (site.kind != Site::Return)
                continue;
            if (auto *invoke = dyn_cast<InvokeInst>(site.place)) {
                // The result is put away in a block of its own.
                BasicBlock *behind = invoke->getNormalDest();
                if (!behind->getSinglePredecessor())
                    behind = SplitEdge(invoke->getParent(), behind);
                site.head = SplitBlock(behind, behind->getFirstInsertionPt());
                continue;
            }
            Instruction *next = site.place->getNextNode();
            site.head = SplitBlock(next->getParent(), next);
        }
        for (Site &site : sites)
            if (site.kind != Site::Return)
                site.head = SplitBlock(site.place->getParent(), site.place);
        for (Instruction *next : section_ends)
            SplitBlock(next->getParent(), next);
    }

    Function &function;
    const Inside &inside;
    const locks::Held &held;
    SmallVector<Site, 16> sites;
    // What comes behind the last release: what it needs is no live-in.
    SmallVector<Instruction *, 4> section_ends;
};

// What is derived from one other value costs nothing to be derived where it is used; so it is no
// live-in beside that one.
bool is_derived(const Instruction &instruction) {
    if (const auto *place = dyn_cast<GetElementPtrInst>(&instruction))
        return place->hasAllConstantIndices();
    return isa<CastInst>(instruction) && !isa<Constant>(instruction.getOperand(0));
}

void derive_late(Function &function) {
    SmallVector<Instruction *, 16> derived;
    for (Instruction &instruction : instructions(function))
        if (is_derived(instruction))
            derived.push_back(&instruction);
    // What is derived from another one comes behind it.
    for (Instruction *instruction : reverse(derived)) {
        // One for each block, in front of its first use there.
        DenseMap<const BasicBlock *, Instruction *> of_blocks;
        for (Use &use : make_early_inc_range(instruction->uses())) {
            auto *user = cast<Instruction>(use.getUser());
            if (user->getParent() == instruction->getParent() || isa<PHINode>(user))
                continue;
            Instruction *&again = of_blocks[user->getParent()];
            if (!again) {
                again = instruction->clone();
                again->insertBefore(user);
            } else if (user->comesBefore(again)) {
                again->moveBefore(user);
            }
            use.set(again);
        }
        if (instruction->use_empty())
            instruction->eraseFromParent();
    }
}

} // namespace

bool leads_to_code(const CallBase &call) {
    if (isa<IntrinsicInst>(call) || call.isInlineAsm() || may_be_repeated(call))
        return false;
    const Function *callee = call.getCalledFunction();
    if (!callee || !callee->isDeclaration())
        return true;
    // What does not return ends the program, in the middle of a section, which goes on when the
    // store is opened again.
    return !runtime::has(callee->getName()) && !is_sanitizers(*callee) && !counts(*callee) &&
           !is_asked(call) && !never_returns(call);
}

void add_live_ins(Function &function, MutableArrayRef<Site> sites, const locks::Held &held) {
    derive_late(function);
    // With the blocks that are new.
    const Inside inside(function, held);
    const Live live(function, inside);
    const Live all(function, [](const Instruction &) { return true; });
    const DataLayout &layout = function.getDataLayout();
    auto add = [&](Site &site, Value *value) {
        site.live_ins.push_back(value);
        site.needs_locals |= leads_to_locals(*value);
        site.sizes.push_back(
            alignTo(layout.getTypeStoreSize(value->getType()).getFixedValue(), word));
    };
    // Calls behind their returns.
    for (unsigned i = sites.size(); i-- > 0;) {
        Site &site = sites[i];
        if (site.kind == Site::Call)
            for (Value *value : sites[i + 1].live_ins)
                add(site, value);
        for (Value *value : live.at(*site.head))
            if (value != site.place && !is_contained(site.live_ins, value))
                add(site, value);
        for (Value *value : all.at(*site.head))
            if (value != site.place && !is_contained(site.live_ins, value))
                site.not_needed.push_back(value);
    }
}

bool has_call(ArrayRef<Site> sites, unsigned number) {
    return number > 0 && sites[number - 1].kind == Site::Call;
}

SmallVector<Site, 16> make_sites(Function &function, const Inside &inside, const locks::Held &held,
                                 FunctionAnalysisManager &analyses, Omitted &omitted) {
    return Maker(function, inside, held).make(analyses, omitted);
}

} // namespace durumcc::ido
