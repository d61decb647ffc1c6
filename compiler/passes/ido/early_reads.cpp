#include "ido/early_reads.h"

#include "ido/globals.h"
#include "ido/writers.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// Each is a live-in of all regions up to its use, and a record has room for 128 words.
constexpr unsigned reads_max = 32;
// Each looks for conflicts anew.
constexpr unsigned rounds_max = 4;
// Of the ways between two blocks.
constexpr unsigned blocks_max = 8;

class Mover {
  public:
    Mover(Function &function, IsInside is_inside, FunctionAnalysisManager &analyses)
        : is_inside(is_inside), aliases(analyses.getResult<AAManager>(function)),
          dominators(analyses.getResult<DominatorTreeAnalysis>(function)),
          post_dominators(analyses.getResult<PostDominatorTreeAnalysis>(function)),
          in_loops(blocks_in_loops(function)) {}

    // In front of the first store that it can pass, in its block and in those in front from which
    // each way leads to it. What is between is done in any case. That it may pass a store is asked
    // of everything that is known of aliases: the compiler itself might have put it there.
    bool move(LoadInst &read) {
        Instruction *place = nullptr;
        BasicBlock *block = read.getParent();
        bool goes_on = pass(read, read.getPrevNode(), place);
        while (goes_on) {
            BasicBlock *before = block_before(*block);
            if (!before || !pass_between(read, *before, *block, place))
                break;
            block = before;
            goes_on = pass(read, block->getTerminator(), place);
        }
        return place && move_to(read, *place);
    }

  private:
    // Whether the read can pass all up to the begin of the block. The first store that it passes.
    bool pass(const LoadInst &read, Instruction *last, Instruction *&place) {
        for (Instruction *one = last; one && !isa<PHINode>(one); one = one->getPrevNode()) {
            if (!is_inside(*one) || !may_be_repeated(*one))
                return false;
            if (may_write(*one, read))
                return false;
            if (one->mayWriteToMemory())
                place = one;
        }
        return true;
    }

    // What is read is no atomic: it may pass one that is stored to another place, in any order of
    // memory. Only what others have stored and this thread has seen since, by a read, would have to
    // come in front.
    bool may_write(const Instruction &one, const LoadInst &read) {
        const MemoryLocation place = MemoryLocation::get(&read);
        if (!is_writer(one))
            return isModSet(aliases.getModRefInfo(&one, place));
        return !aliases.isNoAlias(written_by(one), place) &&
               !are_apart(read.getPointerOperand(), written_by(one).Ptr);
    }

    // The last one that is on each way to this block, if each way from there leads here.
    BasicBlock *block_before(const BasicBlock &block) const {
        const DomTreeNode *node = dominators.getNode(&block);
        BasicBlock *before = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
        return before && post_dominators.dominates(&block, before) ? before : nullptr;
    }

    // All ways from one block to the other.
    bool pass_between(const LoadInst &read, BasicBlock &before, BasicBlock &block,
                      Instruction *&place) {
        SmallSetVector<BasicBlock *, blocks_max> between;
        auto add = [&](BasicBlock &one) {
            for (BasicBlock *other : predecessors(&one))
                if (other != &before)
                    between.insert(other);
        };
        Instruction *passed = nullptr;
        add(block);
        for (unsigned i = 0; i < between.size(); i++) {
            BasicBlock &one = *between[i];
            // A loop may have no end.
            if (between.size() > blocks_max || in_loops.contains(&one) ||
                !pass(read, one.getTerminator(), passed))
                return false;
            add(one);
        }
        if (passed)
            place = before.getTerminator();
        return true;
    }

    bool move_to(LoadInst &read, Instruction &place) {
        SmallSetVector<Instruction *, 8> moved;
        if (!needs(read, place, moved))
            return false;
        // What another one needs was found behind it.
        for (Instruction *one : reverse(moved))
            one->moveBefore(&place);
        read.moveBefore(&place);
        return true;
    }

    // Whether all that the instruction needs can be had in front of the place, and what has to move
    // for that.
    bool needs(const Instruction &instruction, const Instruction &place,
               SmallSetVector<Instruction *, 8> &moved) {
        for (Value *operand : instruction.operands()) {
            auto *one = dyn_cast<Instruction>(operand);
            if (!one || dominators.dominates(one, &place))
                continue;
            if (one == &place || one->mayReadOrWriteMemory() || isa<PHINode>(one) ||
                !isSafeToSpeculativelyExecute(one))
                return false;
            // Once more, so that it comes in front of whatever needs it.
            moved.remove(one);
            moved.insert(one);
            if (!needs(*one, place, moved))
                return false;
        }
        return true;
    }

    const IsInside is_inside;
    AAResults &aliases;
    const DominatorTree &dominators;
    const PostDominatorTree &post_dominators;
    const SmallPtrSet<const BasicBlock *, 16> in_loops;
};

// What each way to a block computes in the same way is computed once, in front of these ways.
void compute_once(Function &function, const DominatorTree &dominators) {
    for (BasicBlock &block : function) {
        const DomTreeNode *node = dominators.getNode(&block);
        if (!node || !node->getIDom())
            continue;
        Instruction *place = node->getIDom()->getBlock()->getTerminator();
        for (PHINode &phi : make_early_inc_range(block.phis())) {
            auto *first = dyn_cast<Instruction>(phi.getIncomingValue(0));
            auto is_same = [&](const Value *value) {
                const auto *other = dyn_cast<Instruction>(value);
                return other && other->isIdenticalTo(first);
            };
            auto is_there = [&](const Value *operand) {
                const auto *one = dyn_cast<Instruction>(operand);
                return !one || dominators.dominates(one, place);
            };
            if (!first || isa<PHINode>(first) || first->mayReadOrWriteMemory() ||
                !isSafeToSpeculativelyExecute(first) || !all_of(phi.incoming_values(), is_same) ||
                !all_of(first->operands(), is_there))
                continue;
            Instruction *once = first->clone();
            once->insertBefore(place);
            phi.replaceAllUsesWith(once);
            phi.eraseFromParent();
        }
    }
}

} // namespace

void read_early(Function &function, IsInside is_inside, FunctionAnalysisManager &analyses) {
    compute_once(function, analyses.getResult<DominatorTreeAnalysis>(function));
    Mover mover(function, is_inside, analyses);
    SmallSetVector<LoadInst *, 16> moved;
    // Of the conflicts of a store one is told that stands for all: others are seen when it is gone.
    bool has_moved = true;
    for (unsigned round = 0; has_moved && round < rounds_max; round++) {
        has_moved = false;
        Omitted nothing;
        for (const Conflict &conflict : conflicts_in(function, is_inside, analyses, nothing)) {
            auto *read = conflict.is_overwrite() ? dyn_cast<LoadInst>(conflict.first) : nullptr;
            if (!read || moved.contains(read) || moved.size() >= reads_max || !mover.move(*read))
                continue;
            moved.insert(read);
            has_moved = true;
        }
    }
}

} // namespace durumcc::ido
