// What options leave out of transactions, to measure what it costs:
//
//   call void @__nvl_tx_begin(%tx, i32 2, ...)    -fnvl-no-clobber: i32 1
//                                                 -fnvl-no-clauses: i32 1
//                                                 -fnvl-no-transactions: gone
//   call void @__nvl_tx_range(%tx, i32 2, ...)    -fnvl-no-clobber: i32 1
//                                                 -fnvl-no-clauses, -fnvl-no-transactions: gone
//   call void @__nvl_tx_end(%tx)                  -fnvl-no-transactions: gone
//
// This comes first: what the other passes see is a program that was written so.
#include "nvl/language.h"
#include "nvl/passes.h"
#include "nvl/runtime.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Local.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

// As nvl.h has them.
enum Kind : uint32_t { backup = 1, clobber = 2 };
// The argument that says the kind, in __nvl_tx_begin and __nvl_tx_range.
constexpr unsigned kind_argument = 1;

void remove(CallBase &call) {
    CallBase *plain = &call;
    if (auto *invoke = dyn_cast<InvokeInst>(&call))
        plain = changeToCall(invoke);
    plain->eraseFromParent();
}

void simplify(CallBase &call, const Options &options) {
    StringRef name = runtime::called(call);
    bool is_range = name == runtime::tx_range;
    if (options.no_transactions || (is_range && options.no_clauses))
        return remove(call);
    if (name == runtime::tx_end)
        return;
    IRBuilder<> builder(&call);
    Value *kind = call.getArgOperand(kind_argument);
    Value *keeps = options.no_clauses
                       ? builder.getInt32(backup)
                       : builder.CreateSelect(builder.CreateICmpEQ(kind, builder.getInt32(clobber)),
                                              builder.getInt32(backup), kind);
    call.setArgOperand(kind_argument, keeps);
}

} // namespace

void simplify_transactions(Module &module, const Options &options) {
    if (!options.no_transactions && !options.no_clauses && !options.no_clobber)
        return;
    for (Function &function : module)
        for (Instruction &instruction : make_early_inc_range(instructions(function))) {
            StringRef name = runtime::called(instruction);
            if (name == runtime::tx_begin || name == runtime::tx_range || name == runtime::tx_end)
                simplify(cast<CallBase>(instruction), options);
        }
}

} // namespace durumcc::nvl
