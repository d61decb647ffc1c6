#include "locks/results.h"

#include "locks/calls.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

namespace durumcc::locks {
namespace {

using namespace llvm;

// What the result of a call may be.
struct Result {
    bool zero;
    bool other;
};

Result result_in(const ConstantRange &numbers) {
    const bool zero = numbers.contains(APInt::getZero(numbers.getBitWidth()));
    return {zero, zero ? !numbers.isSingleElement() : !numbers.isEmptySet()};
}

// The numbers that make a comparison true. Nothing, if the call is not compared with one.
std::optional<ConstantRange> numbers_of(const ICmpInst &compare, const CallBase &call) {
    const bool is_left = compare.getOperand(0) == &call;
    const auto *number = dyn_cast<ConstantInt>(compare.getOperand(is_left ? 1 : 0));
    if (!number || compare.getOperand(is_left ? 0 : 1) != &call)
        return std::nullopt;
    const auto predicate = is_left ? compare.getPredicate() : compare.getSwappedPredicate();
    return ConstantRange::makeExactICmpRegion(predicate, number->getValue());
}

// What it may be on the way from the end of a block to a successor. Nothing, if the end does not
// look at it.
std::optional<Result> result_on(const Instruction &end, unsigned successor, const CallBase &call) {
    if (const auto *branch = dyn_cast<BranchInst>(&end)) {
        const auto *compare =
            branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
        std::optional<ConstantRange> numbers = compare ? numbers_of(*compare, call) : std::nullopt;
        if (!numbers || branch->getSuccessor(0) == branch->getSuccessor(1))
            return std::nullopt;
        return result_in(successor == 0 ? *numbers : numbers->inverse());
    }
    const auto *table = dyn_cast<SwitchInst>(&end);
    if (!table || table->getCondition() != &call)
        return std::nullopt;
    const BasicBlock *there = table->getSuccessor(successor);
    const bool is_default = there == table->getDefaultDest();
    Result result{is_default, is_default};
    for (const auto &one : table->cases()) {
        const bool leads_there = one.getCaseSuccessor() == there;
        if (one.getCaseValue()->isZero())
            result.zero = leads_there;
        else
            result.other |= leads_there;
    }
    return result;
}

// Whether it was 0: true, false, or not said.
std::optional<bool> was_zero_on(const Instruction &end, unsigned successor, const CallBase &call) {
    std::optional<Result> result = result_on(end, successor, call);
    if (!result || (result->zero && result->other))
        return std::nullopt;
    return result->zero;
}

// A way from the end of a block to a successor.
struct Way {
    const Instruction *end;
    unsigned successor;
};

// Nothing, if several lead there.
std::optional<Way> only_way_to(const BasicBlock &block) {
    const BasicBlock *before = block.getSinglePredecessor();
    if (!before)
        return std::nullopt;
    const Instruction &end = *before->getTerminator();
    for (unsigned i = 0; i < end.getNumSuccessors(); i++)
        if (end.getSuccessor(i) == &block)
            return Way{&end, i};
    return std::nullopt;
}

bool has_outcome(const CallBase &call) {
    std::optional<Action> action = action_of(call);
    return action == Action::Take || action == Action::Try ||
           call.hasFnAttr(Attribute::ReturnsTwice);
}

bool leaves_locks(const CallBase &call) {
    return isa<IntrinsicInst>(call) || call.doesNotAccessMemory();
}

// The way from a call to the end of a block, from its last block to its first.
struct Straight {
    const CallBase *call;
    SmallVector<Way, 16> ways;
};

// Nothing, if there are several ways to the end.
std::optional<Straight> straight_to(const Instruction &end) {
    // Blocks that lead to each other in a ring are never reached.
    constexpr unsigned most_blocks = 16;
    Straight straight{nullptr, {}};
    const Instruction *place = &end;
    while (straight.ways.size() < most_blocks) {
        for (const Instruction *one = place->getPrevNode(); one; one = one->getPrevNode()) {
            straight.call = dyn_cast<CallBase>(one);
            if (straight.call && has_outcome(*straight.call))
                return straight;
            if (straight.call && !leaves_locks(*straight.call))
                return std::nullopt;
        }
        std::optional<Way> way = only_way_to(*place->getParent());
        if (!way)
            return std::nullopt;
        place = way->end;
        straight.ways.push_back(*way);
        straight.call = dyn_cast<CallBase>(place);
        if (!straight.call)
            continue;
        if (has_outcome(*straight.call) && isa<InvokeInst>(place) && way->successor == 0)
            return straight;
        if (!leaves_locks(*straight.call))
            return std::nullopt;
    }
    return std::nullopt;
}

// From a call, or from the begin of the block.
bool touches_memory(const CallBase &call, const Instruction &end) {
    const BasicBlock &block = *end.getParent();
    const bool is_first = call.getParent() == &block;
    auto begin = is_first ? std::next(call.getIterator()) : block.begin();
    return any_of(make_range(begin, end.getIterator()), [](const Instruction &one) {
        return one.mayReadOrWriteMemory() && !one.isDebugOrPseudoInst();
    });
}

// Whether nothing is done on the way from the call before it says, at the end of this block or of
// one before, what was returned.
bool is_followed_to(const Instruction &end, const CallBase &call) {
    std::optional<Straight> straight = straight_to(end);
    if (!straight || straight->call != &call)
        return false;
    for (const Way &way : reverse(straight->ways)) {
        if (way.end == &call)
            continue;
        if (touches_memory(call, *way.end))
            return false;
        if (was_zero_on(*way.end, way.successor, call))
            return true;
    }
    return !touches_memory(call, end);
}

// Whether a switch leads to one place with 0 and, by name, with another number.
bool leads_to_one_place(const Instruction &end) {
    const auto *table = dyn_cast<SwitchInst>(&end);
    if (!table)
        return false;
    auto *number = cast<ConstantInt>(ConstantInt::get(table->getCondition()->getType(), 0));
    const BasicBlock *way_of_zero = table->findCaseValue(number)->getCaseSuccessor();
    return any_of(table->cases(), [&](const auto &one) {
        return !one.getCaseValue()->isZero() && one.getCaseSuccessor() == way_of_zero;
    });
}

} // namespace

std::optional<Outcome> outcome_on(const Instruction &end, unsigned successor) {
    if (!isa<BranchInst, SwitchInst>(end) || end.getNumSuccessors() < 2)
        return std::nullopt;
    std::optional<Straight> straight = straight_to(end);
    if (!straight)
        return std::nullopt;
    const CallBase &call = *straight->call;
    std::optional<bool> is_zero = was_zero_on(end, successor, call);
    auto has_said = [&](const Way &way) {
        return was_zero_on(*way.end, way.successor, call).has_value();
    };
    if (!is_zero || any_of(straight->ways, has_said))
        return std::nullopt;
    return Outcome{&call, *is_zero};
}

bool is_followed(const CallBase &call) {
    auto is_end = [&](const User *user) {
        const auto &one = cast<Instruction>(*user);
        return one.isTerminator() && result_on(one, 0, call) && !leads_to_one_place(one) &&
               is_followed_to(one, call);
    };
    return all_of(call.users(), [&](const User *user) {
        return isa<ICmpInst>(user) ? all_of(user->users(), is_end) : is_end(user);
    });
}

bool is_decided(const CallBase &call) {
    const Instruction &end = *call.getParent()->getTerminator();
    for (unsigned i = 0; i < end.getNumSuccessors(); i++)
        if (!was_zero_on(end, i, call))
            return false;
    return end.getNumSuccessors() > 0 && !touches_memory(call, end);
}

} // namespace durumcc::locks
