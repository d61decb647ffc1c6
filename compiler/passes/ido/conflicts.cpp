#include "ido/regions.h"

#include "ido/counters.h"
#include "ido/globals.h"
#include "ido/library.h"
#include "ido/runtime.h"
#include "ido/writers.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

bool is_one_copy(const MemIntrinsic &intrinsic) {
    // Parts of memmove may overlap: then it reads what it has overwritten.
    return !intrinsic.isVolatile() && !isa<MemMoveInst>(intrinsic);
}

// Neither writes nor comes back in another way, nor is it seen by anybody. Nothing has a place
// between a `musttail` and its return.
bool only_reads(const CallInst &call) {
    return !call.isInlineAsm() && call.onlyReadsMemory() && call.doesNotThrow() &&
           call.hasFnAttr(Attribute::WillReturn) && !call.isConvergent() && !call.isMustTailCall();
}

class Finder {
  public:
    Finder(Function &function, IsInside is_inside, FunctionAnalysisManager &analyses,
           Omitted &omitted)
        : function(function), is_inside(is_inside), omitted(omitted),
          results(analyses.getResult<AAManager>(function)),
          dominators(analyses.getResult<DominatorTreeAnalysis>(function)),
          in_loops(blocks_in_loops(function)), aliases(results), aliases_of_turns(results) {
        if (!omitted.turns)
            aliases_of_turns.enableCrossIterationMode();
        for (BasicBlock &block : function)
            beginnings.try_emplace(&block, scan(block.begin()));
    }

    SmallVector<Conflict, 16> find() {
        SmallVector<Conflict, 16> found;
        auto add = [&](Instruction *first, const SmallSetVector<Instruction *, 8> &writers) {
            for (Instruction *writer : writers)
                found.push_back({first, writer});
        };
        BasicBlock &entry = function.getEntryBlock();
        if (is_inside(entry.front()))
            add(nullptr, conflicting_from(nullptr, entry.begin()));
        for (BasicBlock &block : function)
            for (Instruction &first : block)
                if (!is_repeated(first) || (is_inside(first) && is_reader(first)))
                    add(&first, conflicting_behind(first));
        return without_implied(found);
    }

  private:
    // What comes from a place on to the end of its block, or of the region.
    struct Piece {
        SmallVector<Instruction *, 4> writers;
        bool reaches_end = true;
    };

    bool conflicts(Instruction *first, Instruction &writer) {
        if (!first || !is_repeated(*first))
            return true;
        return may_overwrite(*first, writer) && !is_omitted();
    }

    // What parts a writer from a later place parts it from an earlier one, which is on each way to
    // the later.
    SmallVector<Conflict, 16> without_implied(ArrayRef<Conflict> found) const {
        MapVector<Instruction *, SmallVector<Instruction *, 4>> firsts;
        for (const Conflict &conflict : found)
            firsts[conflict.writer].push_back(conflict.first);
        SmallVector<Conflict, 16> kept;
        for (const auto &[writer, of_writer] : firsts)
            for (Instruction *first : of_writer) {
                auto is_later = [&, first = first](const Instruction *other) {
                    return other && other != first &&
                           (!first || dominators.dominates(first, other));
                };
                if (none_of(of_writer, is_later))
                    kept.push_back({first, writer});
            }
        return kept;
    }

    bool is_omitted() {
        return omitted.overwrites && ++omitted.overwrites_seen % omitted.overwrites == 0;
    }

    bool is_of_region(const Instruction &instruction) const {
        return is_inside(instruction) && is_repeated(instruction);
    }

    bool is_repeated(const Instruction &instruction) const {
        return may_be_repeated(instruction) || (omitted.asked && is_asked(instruction));
    }

    bool is_reader(const Instruction &instruction) {
        // To LLVM, an atomic store reads: it is not moved. And what is asked for may be anywhere.
        if (!instruction.mayReadFromMemory() || isa<StoreInst>(instruction) ||
            is_asked(instruction))
            return false;
        const auto *load = dyn_cast<LoadInst>(&instruction);
        return !load || (!is_counter(load->getPointerOperand()) &&
                         !isNoModRef(results.getModRefInfoMask(MemoryLocation::get(load))));
    }

    Piece scan(BasicBlock::iterator place) const {
        Piece piece;
        for (Instruction &instruction : make_range(place, place->getParent()->end())) {
            if (!is_of_region(instruction)) {
                piece.reaches_end = false;
                break;
            }
            if (is_writer(instruction))
                piece.writers.push_back(&instruction);
        }
        return piece;
    }

    SmallSetVector<Instruction *, 8> conflicting_behind(Instruction &first) {
        if (!first.isTerminator())
            return conflicting_from(&first, std::next(first.getIterator()));
        // An invoke; what else ends a block and is done once is the end of the function.
        SmallSetVector<Instruction *, 8> found;
        for (BasicBlock *next : successors(&first))
            for (Instruction *writer : conflicting_from(&first, next->begin()))
                found.insert(writer);
        return found;
    }

    // Of those that may come before anything that is done once, the first one on each way that
    // conflicts: what parts it from `first` does so for all that come behind it on that way. In an
    // order that is always the same.
    SmallSetVector<Instruction *, 8> conflicting_from(Instruction *first,
                                                      BasicBlock::iterator place) {
        SmallSetVector<Instruction *, 8> found;
        SmallSetVector<BasicBlock *, 16> blocks;
        auto go_on = [&](const Piece &piece, BasicBlock &block) {
            for (Instruction *writer : piece.writers)
                if (conflicts(first, *writer)) {
                    found.insert(writer);
                    return;
                }
            if (piece.reaches_end)
                blocks.insert(succ_begin(&block), succ_end(&block));
        };
        go_on(scan(place), *place->getParent());
        for (unsigned i = 0; i < blocks.size(); i++)
            go_on(beginnings.find(blocks[i])->second, *blocks[i]);
        return found;
    }

    // What scopes tell (`restrict` of a function that was inlined) is told of one turn of a loop.
    // What types tell does not hold here: memory that was read as one may be written as another.
    bool may_overwrite(Instruction &reader, Instruction &writer) {
        MemoryLocation written = written_by(writer);
        written.AATags = AAMDNodes();
        if (const Value *read = getLoadStorePointerOperand(&reader))
            if (are_apart(read, written.Ptr))
                return false;
        // Else a reader and a writer behind the loop have values of different turns.
        BatchAAResults &asked = is_in_loop(reader) ? aliases_of_turns : aliases;
        if (is_determined(reader))
            return any_of(read_by(cast<CallBase>(reader)), [&](const Value *pointer) {
                const MemoryLocation read = MemoryLocation::getBeforeOrAfter(pointer);
                return !isNoModRef(results.getModRefInfoMask(read)) &&
                       asked.alias(read, written) != AliasResult::NoAlias;
            });
        return isRefSet(asked.getModRefInfo(&reader, written));
    }

    // Also in one that has several entries.
    bool is_in_loop(const Instruction &instruction) const {
        return in_loops.contains(instruction.getParent());
    }

    Function &function;
    const IsInside is_inside;
    Omitted &omitted;
    AAResults &results;
    const DominatorTree &dominators;
    const SmallPtrSet<const BasicBlock *, 16> in_loops;
    BatchAAResults aliases;
    BatchAAResults aliases_of_turns;
    DenseMap<const BasicBlock *, Piece> beginnings;
};

// That two objects are apart is told of one turn of a loop, and would be believed for all.
void forget_hints(Function &function) {
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
        if (auto *assumption = dyn_cast<AssumeInst>(&instruction))
            if (assumption->getOperandBundle("separate_storage"))
                assumption->eraseFromParent();
}

} // namespace

SmallPtrSet<const BasicBlock *, 16> blocks_in_loops(const Function &function) {
    SmallPtrSet<const BasicBlock *, 16> blocks;
    for (auto ring = scc_begin(&function); !ring.isAtEnd(); ++ring)
        if (ring.hasCycle())
            blocks.insert(ring->begin(), ring->end());
    return blocks;
}

bool may_be_repeated(const Instruction &instruction) {
    if (const auto *load = dyn_cast<LoadInst>(&instruction))
        return load->isSimple();
    // An atomic one, too: a lock orders those who write there, if not those who read.
    if (const auto *store = dyn_cast<StoreInst>(&instruction))
        return !store->isVolatile();
    if (const auto *place = dyn_cast<AllocaInst>(&instruction))
        return place->isStaticAlloca();
    if (const auto *intrinsic = dyn_cast<MemIntrinsic>(&instruction))
        return is_one_copy(*intrinsic);
    if (const auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction))
        if (intrinsic->isAssumeLikeIntrinsic())
            return !intrinsic->isLifetimeStartOrEnd();
    if (is_masked_store(instruction))
        return true;
    if (const auto *call = dyn_cast<CallInst>(&instruction))
        return only_reads(*call) || is_determined(*call) || runtime::is_check(*call);
    if (instruction.isTerminator())
        return isa<BranchInst, SwitchInst>(instruction);
    return !instruction.mayReadOrWriteMemory() && !isa<CallBase>(instruction);
}

SmallVector<Conflict, 16> conflicts_in(Function &function, IsInside is_inside,
                                       FunctionAnalysisManager &analyses, Omitted &omitted) {
    forget_hints(function);
    return Finder(function, is_inside, analyses, omitted).find();
}

bool Omitted::read(StringRef word) {
    if (word == "one-turn")
        return turns = true;
    if (word == "ask-again")
        return asked = true;
    if (word == "atomic-words")
        return words = true;
    return word.consume_front("leave-out=") && !word.getAsInteger(10, overwrites);
}

} // namespace durumcc::ido
