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
    // Which of the conflicts have it on each way from the first to the writer.
    BitVector parted;
    // How often it is passed, roughly.
    double cost;
};

// Each writer has a place in front of it, which is on each way to it. Where a loop writes what was
// read before it, once in front of the loop does as well.
SmallSetVector<Instruction *, 16> places_for(ArrayRef<Conflict> conflicts, const LoopInfo &loops) {
    SmallSetVector<Instruction *, 16> places;
    for (const Conflict &conflict : conflicts) {
        places.insert(conflict.writer);
        const Loop *loop = loops.getLoopFor(conflict.writer->getParent());
        for (; loop && !(conflict.first && loop->contains(conflict.first));
             loop = loop->getParentLoop())
            if (BasicBlock *before = loop->getLoopPreheader())
                places.insert(before->getTerminator());
    }
    return places;
}

// Whether all ways from the first to the writer pass the place. A way around it would make one from
// the function's begin over the first, which the place does not dominate, to the writer, which it
// does.
bool parts(const Instruction &place, const Conflict &conflict, const DominatorTree &dominators) {
    if (&place == conflict.writer)
        return true;
    if (!dominators.dominates(&place, conflict.writer))
        return false;
    const Instruction *first = conflict.first;
    return !first || (&place != first && !dominators.dominates(&place, first));
}

unsigned count_in_both(BitVector some, const BitVector &others) {
    some &= others;
    return some.count();
}

} // namespace

// A hitting set, the cheapest place first for what it parts (iDO, §IV-A(b)).
SmallVector<Cut, 16> cuts_for(ArrayRef<Conflict> conflicts, Function &function,
                              FunctionAnalysisManager &analyses) {
    const DominatorTree &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
    const LoopInfo &loops = analyses.getResult<LoopAnalysis>(function);
    SmallVector<Place, 16> places;
    for (Instruction *instruction : places_for(conflicts, loops)) {
        Place place{instruction, BitVector(conflicts.size()),
                    1 + 10.0 * loops.getLoopDepth(instruction->getParent())};
        for (unsigned i = 0; i < conflicts.size(); i++)
            place.parted[i] = parts(*instruction, conflicts[i], dominators);
        places.push_back(std::move(place));
    }
    DenseMap<const Instruction *, Conflict> chosen;
    BitVector open(conflicts.size(), true);
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
        auto is_overwrite = [&](unsigned i) { return conflicts[i].is_overwrite(); };
        const auto first = find_if(parted.set_bits(), is_overwrite);
        const bool is_any = first != parted.set_bits_end();
        chosen.insert({best->instruction, conflicts[is_any ? *first : parted.find_first()]});
        open.reset(best->parted);
    }
    SmallVector<Cut, 16> cuts;
    for (BasicBlock &block : function)
        for (Instruction &place : block)
            if (auto found = chosen.find(&place); found != chosen.end())
                cuts.push_back({&place, found->second});
    return cuts;
}

} // namespace durumcc::ido
