#include "locks/held.h"

#include "locks/calls.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"

namespace durumcc::locks {
namespace {

using namespace llvm;

// What the result of a call may be: 0, or another number.
struct Result {
    bool zero;
    bool other;
};

// What it may be on the way from the end of a block to a successor. Nothing, if the end does not
// look at it.
std::optional<Result> result_on(const Instruction &end, unsigned successor, const CallBase &call) {
    if (const auto *branch = dyn_cast<BranchInst>(&end)) {
        const auto *compare =
            branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
        if (!compare || !compare->isEquality() || compare->getOperand(0) != &call)
            return std::nullopt;
        const auto *number = dyn_cast<ConstantInt>(compare->getOperand(1));
        if (!number || branch->getSuccessor(0) == branch->getSuccessor(1))
            return std::nullopt;
        if ((compare->getPredicate() == ICmpInst::ICMP_EQ) == (successor == 0))
            return Result{number->isZero(), !number->isZero()};
        return Result{!number->isZero(), true};
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

// Whether a lock was taken, by the result of the call that takes it: true, false, or not said.
std::optional<bool> was_taken_on(const Instruction &end, unsigned successor, const CallBase &call) {
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

// A call that takes a lock, and of which the way from the end of a block says for the first time
// whether it has. Control has come from the call straight to there, and nothing between takes or
// releases another lock. So what is found out is found out once.
struct Outcome {
    const CallBase *call;
    bool was_taken;
};

std::optional<Outcome> outcome_on(const Instruction &end, unsigned successor) {
    // Blocks that lead to each other in a ring are never reached.
    constexpr unsigned most_blocks = 16;
    SmallVector<Way, most_blocks> ways{{&end, successor}};
    auto outcome_of = [&](const CallBase &call) -> std::optional<Outcome> {
        std::optional<bool> taken = was_taken_on(end, successor, call);
        auto has_said = [&](const Way &way) {
            return was_taken_on(*way.end, way.successor, call).has_value();
        };
        if (!taken || any_of(drop_begin(ways), has_said))
            return std::nullopt;
        return Outcome{&call, *taken};
    };
    while (ways.size() < most_blocks) {
        const Instruction *one = ways.back().end->getPrevNode();
        for (; one; one = one->getPrevNode()) {
            const auto *call = dyn_cast<CallBase>(one);
            if (!call || call->isDebugOrPseudoInst())
                continue;
            std::optional<Action> action = action_of(*call);
            if (action == Action::Take || action == Action::Try)
                return outcome_of(*call);
            if (!call->doesNotAccessMemory())
                return std::nullopt;
        }
        std::optional<Way> way = only_way_to(*ways.back().end->getParent());
        if (!way || isa<InvokeInst>(way->end))
            return std::nullopt;
        ways.push_back(*way);
    }
    return std::nullopt;
}

} // namespace

Held::Held(const Module &module) {
    summarize(module);
    enter(module);
}

const Summary &Held::summary(const Function &function) const {
    return summaries.find(&function)->second;
}

Depth Held::entry(const Function &function) const {
    auto found = entries.find(&function);
    // What nobody calls.
    return found == entries.end() ? Depth{} : found->second;
}

Summary Held::effect(const CallBase &call) const {
    // An unlock that fails is a mistake of the program; who has waited has the lock again, whatever
    // the call returns, and when the thread is cancelled in it.
    if (std::optional<Action> action = action_of(call)) {
        switch (*action) {
        case Action::Take:
        case Action::Begin:
            return {Depth{1, 1}, std::nullopt, 0};
        case Action::Try:
            return {Depth{0, 1}, std::nullopt, 0};
        case Action::TakeAll: {
            const int locks = call.arg_size();
            return {Depth{locks, locks}, Depth{}, 0};
        }
        case Action::Release:
        case Action::End:
            return {Depth{-1, -1}, std::nullopt, -1};
        case Action::Wait:
            return {Depth{}, Depth{}, 0};
        }
    }
    const Function *callee = call.getCalledFunction();
    // Another definition may take the place of one that is interposable; it has to do the same.
    Summary summary;
    if (callee && !callee->isDeclaration()) {
        auto found = summaries.find(callee);
        if (found != summaries.end())
            summary = found->second;
    } else {
        // What other files define leaves its caller's locks as they are.
        summary = {Depth{}, Depth{}, 0};
    }
    if (call.doesNotReturn())
        summary.returns = std::nullopt;
    if (call.doesNotThrow())
        summary.unwinds = std::nullopt;
    return summary;
}

std::optional<Depth> Held::change(const Instruction &instruction) const {
    const auto *call = dyn_cast<CallBase>(&instruction);
    // An invoke has two ends.
    return call && !isa<InvokeInst>(call) ? effect(*call).returns : Depth{};
}

std::optional<Depth> Held::change_to(const Instruction &end, unsigned successor) const {
    if (const auto *invoke = dyn_cast<InvokeInst>(&end)) {
        const Summary summary = effect(*invoke);
        return successor == 0 ? summary.returns : summary.unwinds;
    }
    std::optional<Outcome> outcome = outcome_on(end, successor);
    if (!outcome)
        return Depth{};
    if (action_of(*outcome->call) == Action::Take)
        return outcome->was_taken ? Depth{} : Depth{-1, -1};
    return outcome->was_taken ? Depth{1, 0} : Depth{0, -1};
}

Summary Held::summary_of(const Function &function) const {
    Summary summary;
    auto leave = [](std::optional<Depth> &end, Depth depth) { end = end ? *end | depth : depth; };
    const Depths depths(function, *this);
    depths.each(function, [&](const Instruction &instruction, std::optional<Depth> depth) {
        if (!depth)
            return;
        if (isa<ReturnInst>(instruction))
            leave(summary.returns, *depth);
        if (isa<ResumeInst>(instruction))
            leave(summary.unwinds, *depth);
        const auto *call = dyn_cast<CallBase>(&instruction);
        if (!call)
            return;
        const Summary called = effect(*call);
        summary.lowest = std::min(summary.lowest, (*depth + Depth{called.lowest, 0}).min);
        if (isa<CallInst>(call) && called.unwinds && !function.doesNotThrow())
            leave(summary.unwinds, *depth + *called.unwinds);
    });
    return summary;
}

void Held::summarize(const Module &module) {
    SetVector<const Function *> to_do;
    for (const Function &function : module)
        if (!function.isDeclaration())
            to_do.insert(&function);
    // A function without a summary has not been seen to come back, nor has what calls it. Bounds
    // only move apart, and they are bounded.
    while (!to_do.empty()) {
        const Function *function = to_do.pop_back_val();
        const Summary summary = summary_of(*function);
        auto [place, is_new] = summaries.try_emplace(function, summary);
        if (!is_new && place->second == summary)
            continue;
        place->second = summary;
        for (const User *user : function->users())
            if (const auto *call = dyn_cast<CallBase>(user))
                if (call->getCalledFunction() == function)
                    to_do.insert(call->getFunction());
    }
}

void Held::enter(const Module &module) {
    SetVector<const Function *> to_do;
    auto come = [&](const Function &function, Depth depth) {
        depth = {std::max(depth.min, 0), std::max(depth.max, 0)};
        auto [place, is_new] = entries.try_emplace(&function, depth);
        const Depth met = place->second | depth;
        if (!is_new && met == place->second)
            return;
        place->second = met;
        to_do.insert(&function);
    };
    for (const Function &function : module) {
        if (function.isDeclaration())
            continue;
        if (function.getName() == "main" && function.use_empty())
            come(function, {});
        else if (!function.hasLocalLinkage() || function.hasAddressTaken())
            come(function, {0, Depth::many});
    }
    while (!to_do.empty()) {
        const Function *caller = to_do.pop_back_val();
        const Depth entry = entries[caller];
        const Depths depths(*caller, *this);
        depths.each(*caller, [&](const Instruction &instruction, std::optional<Depth> depth) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            const Function *callee = call ? call->getCalledFunction() : nullptr;
            if (depth && callee && !callee->isDeclaration())
                come(*callee, entry + *depth);
        });
    }
}

} // namespace durumcc::locks
