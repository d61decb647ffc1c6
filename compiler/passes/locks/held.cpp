#include "locks/held.h"

#include "locks/calls.h"
#include "locks/changes.h"
#include "locks/results.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

#include <algorithm>

namespace durumcc::locks {
namespace {

using namespace llvm;

// What is known of a function that nobody sees: it leaves its caller's locks as they are.
const Summary unseen{Depth{}, Depth{}, 0};

// A declaration may tell more.
Summary seen_elsewhere(const Function &function) {
    const std::optional<Depth> change = told_change(function);
    return change ? Summary{change, Depth{}, std::min(change->min, 0)} : unseen;
}

// setjmp comes back for the second time with whatever was held where longjmp was called.
constexpr Depth any{-Depth::many, Depth::many};

void join(std::optional<Depth> &end, std::optional<Depth> other) {
    end = end && other ? *end | *other : end ? end : other;
}

Summary operator|(Summary one, const Summary &other) {
    join(one.returns, other.returns);
    join(one.unwinds, other.unwinds);
    one.lowest = std::min(one.lowest, other.lowest);
    return one;
}

// An unlock that fails is a mistake of the program; who has waited has the lock again, whatever the
// call returns, and when the thread is cancelled in it.
Summary effect_of(Action action, const GlobalValue &called) {
    switch (action) {
    case Action::Take:
    case Action::Begin:
        return {Depth{1, 1}, std::nullopt, 0};
    case Action::Try:
        return {Depth{0, 1}, std::nullopt, 0};
    case Action::TakeAll: {
        const int locks = locks_taken_by(called);
        return {Depth{locks, locks}, Depth{}, 0};
    }
    case Action::Release:
    case Action::End:
        return {Depth{-1, -1}, std::nullopt, -1};
    case Action::Wait:
        return unseen;
    }
    llvm_unreachable("all actions are there");
}

bool has_address_taken(const Function &function) {
    return function.hasAddressTaken(nullptr, false, true, false, false,
                                    /*IgnoreCastedDirectCall=*/true);
}

// Functions that are called by a pointer are told from each other by how many arguments they have;
// these have any number.
constexpr unsigned any_number = ~0u - 2;

unsigned arguments_of(const Function &function) {
    return function.isVarArg() ? any_number : function.arg_size();
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

// A function without a summary has not been seen to come back, nor has what calls it.
Summary Held::effect_of_callee(const CallBase &call) const {
    const GlobalValue *called = called_by(call);
    const Function *callee = callee_of(call);
    if (call.isInlineAsm())
        return unseen;
    if (!callee)
        return unseen | by_address.lookup(call.arg_size()) | by_address.lookup(any_number);
    if (callee->isDeclaration())
        return seen_elsewhere(*callee);
    const Summary summary = summaries.lookup(callee);
    // What may take the place of a definition is not seen.
    return called->isInterposable() ? unseen | summary : summary;
}

Summary Held::effect(const CallBase &call) const {
    if (std::optional<Action> action = action_of(call)) {
        Summary summary = effect_of(*action, *called_by(call));
        if (action == Action::Take && !is_followed(call))
            summary.returns->min = 0;
        return summary;
    }
    Summary summary = effect_of_callee(call);
    if (call.hasFnAttr(Attribute::ReturnsTwice) && !is_decided(call))
        summary.returns = any;
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
    if (!action_of(*outcome->call))
        return !outcome->is_zero && is_decided(*outcome->call) ? any : Depth{};
    // Behind the call it is held, or perhaps.
    const Depth behind = *effect(*outcome->call).returns;
    const int taken = outcome->is_zero;
    return Depth{taken - behind.min, taken - behind.max};
}

Summary Held::summary_of(const Function &function) const {
    Summary summary;
    const Depths depths(function, *this);
    depths.each(function, [&](const Instruction &instruction, std::optional<Depth> depth) {
        if (!depth)
            return;
        if (isa<ReturnInst>(instruction))
            join(summary.returns, *depth);
        if (isa<ResumeInst>(instruction))
            join(summary.unwinds, *depth);
        const auto *call = dyn_cast<CallBase>(&instruction);
        if (!call)
            return;
        const Summary called = effect(*call);
        summary.lowest = std::min(summary.lowest, (*depth + Depth{called.lowest, 0}).min);
        if (isa<CallInst>(call) && called.unwinds && !function.doesNotThrow())
            join(summary.unwinds, *depth + *called.unwinds);
    });
    return summary;
}

// What may be called by a pointer.
bool Held::add_by_address(unsigned arguments, const Summary &summary) {
    auto [place, is_new] = by_address.try_emplace(arguments, summary);
    const Summary met = place->second | summary;
    if (!is_new && met == place->second)
        return false;
    place->second = met;
    return true;
}

void Held::summarize(const Module &module) {
    using Callers = SmallSetVector<const Function *, 4>;
    SetVector<const Function *> to_do;
    DenseMap<const Function *, Callers> callers;
    Callers callers_by_address;
    for (const Function &function : module) {
        std::optional<Action> action = action_of(function);
        if (action && has_address_taken(function))
            add_by_address(arguments_of(function), unseen | effect_of(*action, function));
        if (function.isDeclaration()) {
            if (told_change(function) && has_address_taken(function))
                add_by_address(arguments_of(function), seen_elsewhere(function));
            continue;
        }
        to_do.insert(&function);
        for (const Instruction &instruction : instructions(function))
            if (const auto *call = dyn_cast<CallBase>(&instruction)) {
                const Function *callee = callee_of(*call);
                (callee ? callers[callee] : callers_by_address).insert(&function);
            }
    }
    // Bounds only move apart, and they are bounded.
    while (!to_do.empty()) {
        const Function *function = to_do.pop_back_val();
        const Summary summary = summary_of(*function);
        auto [place, is_new] = summaries.try_emplace(function, summary);
        if (!is_new && place->second == summary)
            continue;
        place->second = summary;
        const Callers &direct = callers[function];
        to_do.insert(direct.begin(), direct.end());
        if (has_address_taken(*function) && add_by_address(arguments_of(*function), summary))
            to_do.insert(callers_by_address.begin(), callers_by_address.end());
    }
}

// How it is entered is known, whatever its callers seem to hold.
static bool is_version(const Function &function) {
    return function.hasFnAttribute(entered_inside) || function.hasFnAttribute(entered_outside);
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
        if (function.hasFnAttribute(entered_inside))
            come(function, {1, Depth::many});
        else if (function.hasFnAttribute(entered_outside) ||
                 function.hasFnAttribute(called_outside) ||
                 (function.getName() == "main" && function.use_empty()))
            come(function, {});
        else if (!function.hasLocalLinkage() || has_address_taken(function))
            come(function, {0, Depth::many});
    }
    while (!to_do.empty()) {
        const Function *caller = to_do.pop_back_val();
        const Depth entry = entries[caller];
        const Depths depths(*caller, *this);
        depths.each(*caller, [&](const Instruction &instruction, std::optional<Depth> depth) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            const Function *callee = call ? callee_of(*call) : nullptr;
            if (depth && callee && !callee->isDeclaration() && !is_version(*callee))
                come(*callee, entry + *depth);
        });
    }
}

} // namespace durumcc::locks
