#include "ido/counters.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/GlobalVariable.h"

namespace durumcc::ido {

using namespace llvm;

bool is_counter(const Value *pointer) {
    const auto *variable = dyn_cast<GlobalVariable>(getUnderlyingObject(pointer));
    if (!variable)
        return false;
    StringRef name = variable->getName();
    // The counters, bits of conditions, and what is known of the values of calls.
    return name.starts_with("__llvm_gcov_ctr") || name.starts_with("__profc_") ||
           name.starts_with("__profbm_") || name.starts_with("__profd_");
}

bool counts(const Function &function) {
    StringRef name = function.getName();
    return name.starts_with("__llvm_profile_") || name.starts_with("__llvm_gcov_") ||
           name.starts_with("llvm_gcda_") || name.starts_with("llvm_gcov_");
}

} // namespace durumcc::ido
