#include "ido/regions.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// In front of an instruction.
struct Place {
    Instruction *instruction;
    // Which of the overwrites have it on each way from reader to writer.
    BitVector parted;
    // How often it is passed, roughly.
    double cost;
};

// Each writer has a place in front of it, which is on each way to it. Where a loop writes what was
// read before it, once in front of the loop does as well.
SmallSetVector<Instruction *, 16> places_for(ArrayRef<Overwrite> overwrites,
                                             const LoopInfo &loops) {
    SmallSetVector<Instruction *, 16> places;
    for (const Overwrite &overwrite : overwrites) {
        places.insert(overwrite.writer);
        const Loop *loop = loops.getLoopFor(overwrite.writer->getParent());
        for (; loop && !loop->contains(overwrite.reader); loop = loop->getParentLoop())
            if (BasicBlock *before = loop->getLoopPreheader())
                places.insert(before->getTerminator());
    }
    return places;
}

// Whether all ways from the reader to the writer pass the place. A way around it would make one
// from the function's begin over the reader, which the place does not dominate, to the writer,
// which it does.
bool parts(const Instruction &place, const Overwrite &overwrite, const DominatorTree &dominators) {
    if (&place == overwrite.writer)
        return true;
    return dominators.dominates(&place, overwrite.writer) && &place != overwrite.reader &&
           !dominators.dominates(&place, overwrite.reader);
}

unsigned count_in_both(BitVector some, const BitVector &others) {
    some &= others;
    return some.count();
}

} // namespace

// A hitting set, the cheapest place first for what it parts (iDO, §IV-A(b)).
SmallVector<Cut, 16> cuts_for(ArrayRef<Overwrite> overwrites, Function &function,
                              FunctionAnalysisManager &analyses) {
    const DominatorTree &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
    const LoopInfo &loops = analyses.getResult<LoopAnalysis>(function);
    SmallVector<Place, 16> places;
    for (Instruction *instruction : places_for(overwrites, loops)) {
        Place place{instruction, BitVector(overwrites.size()),
                    1 + 10.0 * loops.getLoopDepth(instruction->getParent())};
        for (unsigned i = 0; i < overwrites.size(); i++)
            place.parted[i] = parts(*instruction, overwrites[i], dominators);
        places.push_back(std::move(place));
    }
    SmallVector<Cut, 16> cuts;
    BitVector open(overwrites.size(), true);
    while (open.any()) {
        const Place *best = nullptr;
        double most = 0;
        for (const Place &place : places) {
            const double value = count_in_both(place.parted, open) / place.cost;
            if (value > most) {
                best = &place;
                most = value;
            }
        }
        BitVector parted = best->parted;
        parted &= open;
        cuts.push_back({best->instruction, overwrites[parted.find_first()]});
        open.reset(best->parted);
    }
    return cuts;
}

} // namespace durumcc::ido
