// Pointers to different allocations have no order and no distance: where the program asks for one,
// the runtime checks that both lead into the same allocation, and ends the program otherwise.
// Pointers of one origin need no check, and those with null have none.
//
//   %less = icmp ult ptr addrspace(1) %p, %q
//   call void @__nvl_check_same(%p, %q)                 in front of it
//
// Equality is not checked: any two objects may be compared for it, as lists do.
//
// The calls stand before any other pass has run, which would ask for the order also where the
// program does not, as in `p && p < end`. When local variables are in registers, so that origins
// are seen, those that are not needed go again, and those in loops move in front of them.
#include "nvl/language.h"
#include "nvl/passes.h"
#include "nvl/runtime.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

// Two pointers in NVM, the order or distance of which is asked for.
struct Pair {
    Instruction *instruction;
    Value *one;
    Value *other;
};

Value *pointer_behind(Value *number) {
    auto *cast = dyn_cast<PtrToIntOperator>(number);
    return cast && is_nvm(cast->getPointerOperand()) ? cast->getPointerOperand() : nullptr;
}

std::optional<Pair> pair_in(Instruction &instruction) {
    Pair pair{&instruction, nullptr, nullptr};
    if (auto *compare = dyn_cast<ICmpInst>(&instruction)) {
        if (compare->isEquality() || !is_nvm(compare->getOperand(0)))
            return std::nullopt;
        pair.one = compare->getOperand(0);
        pair.other = compare->getOperand(1);
    } else if (instruction.getOpcode() == Instruction::Sub) {
        pair.one = pointer_behind(instruction.getOperand(0));
        pair.other = pointer_behind(instruction.getOperand(1));
        if (!pair.one || !pair.other)
            return std::nullopt;
    } else {
        return std::nullopt;
    }
    if (isa<ConstantPointerNull>(pair.one) || isa<ConstantPointerNull>(pair.other))
        return std::nullopt;
    return pair;
}

// What the pointer was computed from, through loops that advance it; itself if that are several.
Value *origin(Value *pointer) {
    SmallVector<const Value *, 4> origins;
    getUnderlyingObjects(pointer, origins, nullptr, 0);
    return origins.size() == 1 ? const_cast<Value *>(origins.front()) : pointer;
}

// Where the check may stand: before the loops in which both origins are the same, if control that
// enters them comes to the check first of all.
Instruction *place(CallBase &check, const LoopInfo &loops) {
    Instruction *place = &check;
    while (const Loop *loop = loops.getLoopFor(place->getParent())) {
        BasicBlock *before = loop->getLoopPreheader();
        if (place->getParent() != loop->getHeader() || !before ||
            !loop->isLoopInvariant(check.getArgOperand(0)) ||
            !loop->isLoopInvariant(check.getArgOperand(1)))
            break;
        place = before->getTerminator();
    }
    return place;
}

} // namespace

void check_comparisons(Module &module) {
    for (Function &function : module) {
        SmallVector<Pair, 8> pairs;
        for (Instruction &instruction : instructions(function))
            if (std::optional<Pair> pair = pair_in(instruction))
                pairs.push_back(*pair);
        for (const Pair &pair : pairs)
            IRBuilder<>(pair.instruction)
                .CreateCall(runtime::declare(module, runtime::check_same), {pair.one, pair.other});
    }
}

void simplify_checks(Module &module, FunctionAnalysisManager &analyses) {
    Function *check_same = module.getFunction(runtime::check_same);
    if (!check_same)
        return;
    SmallVector<CallBase *, 16> checks;
    for (User *user : check_same->users())
        if (auto *call = dyn_cast<CallBase>(user))
            checks.push_back(call);
    for (CallBase *check : checks) {
        Value *one = origin(check->getArgOperand(0));
        Value *other = origin(check->getArgOperand(1));
        if (one == other || isa<ConstantPointerNull>(one) || isa<ConstantPointerNull>(other)) {
            check->eraseFromParent();
            continue;
        }
        Function &function = *check->getFunction();
        auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
        // An origin stands for the whole allocation, and may be the same for many comparisons.
        if (!dominators.dominates(one, check) || !dominators.dominates(other, check))
            continue;
        check->setArgOperand(0, one);
        check->setArgOperand(1, other);
        check->moveBefore(place(*check, analyses.getResult<LoopAnalysis>(function)));
    }
}

} // namespace durumcc::nvl
