#include "ido/openers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

namespace durumcc::ido {

using namespace llvm;

bool is_opener(const Function &function) {
    return any_of(instructions(function), [](const Instruction &instruction) {
        const auto *call = dyn_cast<CallBase>(&instruction);
        const Function *callee = call ? call->getCalledFunction() : nullptr;
        return callee && callee->isDeclaration() &&
               StringSwitch<bool>(callee->getName())
                   .Cases("nv_open", "fork", "vfork", "daemon", true)
                   .Default(false);
    });
}

Instruction *before(const Use &use) {
    auto *user = cast<Instruction>(use.getUser());
    auto *phi = dyn_cast<PHINode>(user);
    return phi ? phi->getIncomingBlock(use)->getTerminator() : user;
}

void keep_openers_apart(Module &module) {
    for (Function &function : module)
        if (is_opener(function))
            for (Instruction &instruction : instructions(function))
                if (auto *call = dyn_cast<CallBase>(&instruction))
                    call->setIsNoInline();
}

} // namespace durumcc::ido
