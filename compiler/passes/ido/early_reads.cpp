#include "ido/early_reads.h"

#include "ido/globals.h"
#include "ido/writers.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// Each is a live-in of all regions up to its use, and a record has room for 128 words.
constexpr unsigned reads_max = 32;
// Each looks for conflicts anew.
constexpr unsigned rounds_max = 4;

class Mover {
  public:
    Mover(IsInside is_inside, AAResults &aliases) : is_inside(is_inside), aliases(aliases) {}

    // In front of the first store of its block that it can pass. What is between is done in any
    // case. That it may pass a store is asked of everything that is known of aliases: the compiler
    // itself might have put it there.
    bool move(LoadInst &read) {
        Instruction *place = nullptr;
        for (Instruction *one = read.getPrevNode(); one; one = one->getPrevNode()) {
            if (!is_inside(*one) || !may_be_repeated(*one) || isa<PHINode>(one))
                break;
            if (isModSet(aliases.getModRefInfo(one, MemoryLocation::get(&read))) &&
                !(is_writer(*one) && are_apart(read.getPointerOperand(), written_by(*one).Ptr)))
                break;
            if (one->mayWriteToMemory())
                place = one;
        }
        return place && move_to(read, *place);
    }

  private:
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
            if (!one || one->getParent() != place.getParent() || one->comesBefore(&place))
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
};

} // namespace

void read_early(Function &function, IsInside is_inside, FunctionAnalysisManager &analyses) {
    Mover mover(is_inside, analyses.getResult<AAManager>(function));
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
