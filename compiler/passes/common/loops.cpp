// A range is exactly what a loop writes. Bytes that it leaves out are not in it: they may belong to
// another allocation, or to another thread. So the loop has to be one
// - that runs as often as can be computed when it begins, and has one way out,
// - in which nobody can look: nothing in it ends the program, jumps, waits, is seen by others, or
//   begins or ends a transaction,
// - in each round of which the store, or a load from the same address, is executed,
// - whose stores follow each other without a gap, upwards or downwards.
// What a loop that never runs writes has 0 bytes, wherever it would begin. A number of bytes that
// overflows would be that of a loop that runs through all of memory.
#include "loops.h"

#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

namespace durumcc {

using namespace llvm;

// Bytes that are written once in each round of the innermost loop around `block`.
struct Loops::Piece {
    const SCEV *start;
    const SCEV *bytes;
    const BasicBlock *block;
    // Numbers of the stores.
    SmallVector<unsigned, 2> writes;
    // Where the addresses are computed, and the call stands; null as long as no loop was left.
    BasicBlock *preheader = nullptr;
    BasicBlock *place = nullptr;
};

Loops::Loops(Function &function, const TargetLibraryInfo &library)
    : layout(function.getParent()->getDataLayout()), library(library), assumptions(function),
      dominators(function), loops(dominators),
      evolution(function, this->library, assumptions, dominators, loops) {
    for (Loop *loop : loops)
        simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr, false);
}

SmallVector<Range, 4> Loops::take_ranges(SmallVectorImpl<Write> &writes, Side side) {
    SmallVector<Range, 4> ranges;
    SmallVector<unsigned, 16> taken;
    SCEVExpander expander(evolution, layout, "range");
    for (const Piece &piece : find(writes, side)) {
        const Write &write = writes[piece.writes.front()];
        Instruction *before = piece.preheader->getTerminator();
        Range &range = ranges.emplace_back();
        range.bytes.start =
            expander.expandCodeFor(piece.start, write.bytes.start->getType(), before);
        range.bytes.length = expander.expandCodeFor(piece.bytes, nullptr, before);
        range.before = side == Side::Before ? before : &*piece.place->getFirstInsertionPt();
        range.location = write.instruction->getDebugLoc();
        append_range(taken, piece.writes);
    }
    llvm::sort(taken, std::greater<unsigned>());
    for (unsigned index : taken)
        writes.erase(writes.begin() + index);
    return ranges;
}

bool Loops::are_ranges(ArrayRef<Write> writes, Side side) {
    unsigned found = 0;
    for (const Piece &piece : find(writes, side))
        found += piece.writes.size();
    return found == count_if(writes, [&](const Write &write) {
               return loops.getLoopFor(write.instruction->getParent());
           });
}

SmallVector<Loops::Piece, 4> Loops::find(ArrayRef<Write> writes, Side side) {
    SmallVector<Piece, 8> pieces;
    for (unsigned index = 0; index < writes.size(); index++)
        if (std::optional<Piece> piece = piece_of(writes, index))
            pieces.push_back(*piece);
    SmallVector<Piece, 4> found;
    while (!pieces.empty()) {
        Piece piece = pieces.pop_back_val();
        while (spread_over_loop(piece, pieces, side))
            ;
        if (piece.place)
            found.push_back(piece);
    }
    return found;
}

const Loop *Loops::quiet_loop(const BasicBlock &block) {
    const Loop *found = nullptr;
    for (const Loop *loop = loops.getLoopFor(&block);
         loop && loop->hasDedicatedExits() && is_quiet(*loop); loop = loop->getParentLoop())
        found = loop;
    return found;
}

std::optional<Loops::Piece> Loops::piece_of(ArrayRef<Write> writes, unsigned index) {
    const Write &write = writes[index];
    const Loop *loop = loops.getLoopFor(write.instruction->getParent());
    const Bytes &bytes = write.bytes;
    if (!loop || !is_quiet(*loop) ||
        (bytes.length && bytes.length->getType()->getIntegerBitWidth() != 64))
        return std::nullopt;
    Piece piece;
    piece.start = evolution.getSCEV(bytes.start);
    piece.bytes = bytes.length ? evolution.getSCEV(bytes.length) : number(int64_t(bytes.count));
    piece.block = block_of(*loop, write, piece.start);
    piece.writes.push_back(index);
    return piece;
}

// Where it is sure that the bytes are the program's: at the store, or at a load that is executed
// more often.
const BasicBlock *Loops::block_of(const Loop &loop, const Write &write, const SCEV *start) const {
    const BasicBlock *block = write.instruction->getParent();
    const BasicBlock *exiting = loop.getExitingBlock();
    if (write.bytes.length || !exiting || is_in_each_round(loop, block, exiting))
        return block;
    for (BasicBlock *other : loop.blocks()) {
        if (loops.getLoopFor(other) != &loop || !is_in_each_round(loop, other, exiting))
            continue;
        for (Instruction &instruction : *other)
            if (auto *load = dyn_cast<LoadInst>(&instruction))
                if (load->getPointerOperandType() == write.bytes.start->getType() &&
                    evolution.getSCEV(load->getPointerOperand()) == start &&
                    layout.getTypeStoreSize(load->getType()) == write.bytes.count)
                    return other;
    }
    return block;
}

bool Loops::is_in_each_round(const Loop &loop, const BasicBlock *block,
                             const BasicBlock *exiting) const {
    return dominators.dominates(block, exiting) ||
           (dominators.dominates(exiting, block) &&
            dominators.dominates(block, loop.getLoopLatch()));
}

bool Loops::is_quiet(const Loop &loop) {
    auto [place, is_new] = quiet.try_emplace(&loop, false);
    if (is_new)
        place->second = all_of(
            loop.blocks(), [](const BasicBlock *block) { return all_of(*block, may_be_passed); });
    return place->second;
}

// From a piece of each round to what all rounds of the loop write.
bool Loops::spread_over_loop(Piece &piece, SmallVectorImpl<Piece> &others, Side side) {
    Loop *loop = loops.getLoopFor(piece.block);
    if (!loop || !loop->getLoopPreheader() || !loop->getLoopLatch() || !is_quiet(*loop))
        return false;
    BasicBlock *exiting = loop->getExitingBlock();
    BasicBlock *exit = loop->getExitBlock();
    const SCEV *again = evolution.getBackedgeTakenCount(loop);
    if (!exiting || !exit || !loop->hasDedicatedExits() || isa<SCEVCouldNotCompute>(again) ||
        evolution.getTypeSizeInBits(again->getType()) > 64 ||
        !is_in_each_round(*loop, piece.block, exiting))
        return false;
    Type *i64 = Type::getInt64Ty(evolution.getContext());
    again = evolution.getNoopOrZeroExtend(again, i64);
    // The last round ends at the test, which may stand before the store.
    bool is_always = dominators.dominates(piece.block, exiting);
    const SCEV *rounds = is_always ? evolution.getAddExpr(again, number(1)) : again;

    const SCEV *start = piece.start;
    const SCEV *bytes = piece.bytes;
    if (!evolution.isLoopInvariant(bytes, loop))
        return false;
    if (evolution.isLoopInvariant(start, loop)) {
        if (!is_always)
            bytes = evolution.getMulExpr(bytes, evolution.getUMinExpr(rounds, number(1)));
    } else {
        const auto *addresses = dyn_cast<SCEVAddRecExpr>(start);
        if (!addresses || addresses->getLoop() != loop || !addresses->isAffine())
            return false;
        const SCEV *step = addresses->getStepRecurrence(evolution);
        start = addresses->getStart();
        if (step == evolution.getNegativeSCEV(bytes))
            start = evolution.getAddExpr(
                start, evolution.getMulExpr(step, evolution.getMinusSCEV(rounds, number(1))));
        else if (step != bytes && !complete_element(piece, others, *loop, step, start, bytes))
            return false;
        bytes = evolution.getMulExpr(bytes, rounds);
    }
    SCEVExpander expander(evolution, layout, "range");
    Instruction *before = loop->getLoopPreheader()->getTerminator();
    if (!evolution.isLoopInvariant(start, loop) || !evolution.isLoopInvariant(bytes, loop) ||
        !expander.isSafeToExpandAt(start, before) || !expander.isSafeToExpandAt(bytes, before))
        return false;
    piece.start = start;
    piece.bytes = bytes;
    piece.preheader = loop->getLoopPreheader();
    piece.place = side == Side::Before ? piece.preheader : exit;
    piece.block = piece.place;
    return true;
}

// Members of the elements of an array: together with other pieces of the same rounds there may be
// no gap. Then `start` and `bytes` are those of the whole element.
bool Loops::complete_element(Piece &piece, SmallVectorImpl<Piece> &others, const Loop &loop,
                             const SCEV *step, const SCEV *&start, const SCEV *&bytes) {
    const auto *stride = dyn_cast<SCEVConstant>(step);
    if (!stride || stride->getAPInt().isNonPositive() || !isa<SCEVConstant>(bytes))
        return false;
    struct Part {
        int64_t offset;
        int64_t bytes;
        int index;
    };
    auto size = [](const SCEV *constant) {
        return cast<SCEVConstant>(constant)->getAPInt().getSExtValue();
    };
    SmallVector<Part, 4> parts{{0, size(bytes), -1}};
    for (unsigned i = 0; i < others.size(); i++) {
        const auto *other = dyn_cast<SCEVAddRecExpr>(others[i].start);
        if (others[i].block != piece.block || !other || other->getLoop() != &loop ||
            !isa<SCEVConstant>(others[i].bytes) || other->getStepRecurrence(evolution) != step)
            continue;
        const auto *distance =
            dyn_cast<SCEVConstant>(evolution.getMinusSCEV(other->getStart(), start));
        if (distance && distance->getAPInt().abs().ult(stride->getAPInt()))
            parts.push_back({size(distance), size(others[i].bytes), int(i)});
    }
    llvm::sort(parts, [](const Part &a, const Part &b) { return a.offset < b.offset; });
    int64_t first = parts.front().offset, end = first;
    for (const Part &part : parts) {
        if (part.offset > end)
            return false;
        end = std::max(end, part.offset + part.bytes);
    }
    if (end - first != size(step))
        return false;
    start = evolution.getAddExpr(start, number(first));
    bytes = step;
    // From the last one on, so that the numbers of those before stay.
    llvm::sort(parts, [](const Part &a, const Part &b) { return a.index > b.index; });
    for (const Part &part : parts) {
        if (part.index < 0)
            continue;
        append_range(piece.writes, others[part.index].writes);
        others.erase(others.begin() + part.index);
    }
    return true;
}

const SCEV *Loops::number(int64_t value) {
    return evolution.getConstant(Type::getInt64Ty(evolution.getContext()), uint64_t(value), true);
}

} // namespace durumcc
