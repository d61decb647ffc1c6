//   p = malloc(n);    p = nv_malloc(n);
//   free(p);          __durum_ido_free(p);    which looks where it lies
//
// Before the optimizer, which knows of these functions that nobody else sees what they give.
#include "ido/allocations.h"

#include "ido/refused.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

struct Replacement {
    const char *from;
    const char *to;
};
constexpr Replacement replacements[] = {
    {"malloc", "nv_malloc"},
    {"calloc", "nv_calloc"},
    {"strdup", "nv_strdup"},
    {"__strdup", "nv_strdup"},
    {"realloc", "__durum_ido_realloc"},
    {"free", "__durum_ido_free"},
    {"_Znwm", "__durum_ido_new"},
    {"_Znam", "__durum_ido_new"},
    {"_ZnwmRKSt9nothrow_t", "__durum_ido_new_nothrow"},
    {"_ZnamRKSt9nothrow_t", "__durum_ido_new_nothrow"},
    {"_ZdlPv", "__durum_ido_free"},
    {"_ZdaPv", "__durum_ido_free"},
    {"_ZdlPvm", "__durum_ido_free_sized"},
    {"_ZdaPvm", "__durum_ido_free_sized"},
    {"_ZdlPvRKSt9nothrow_t", "__durum_ido_free_nothrow"},
    {"_ZdaPvRKSt9nothrow_t", "__durum_ido_free_nothrow"},
};

constexpr const char *aligned[] = {
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
};

// Null, if the module does not use it, or has one of its own.
Function *used(Module &module, const char *name) {
    Function *function = module.getFunction(name);
    return function && function->isDeclaration() && !function->use_empty() ? function : nullptr;
}

} // namespace

void move_allocations(Module &module) {
    for (const char *name : aligned)
        if (const Function *function = used(module, name))
            refuse_calls(*function, Refusal::Alignment);
    for (const auto &[from, to] : replacements) {
        Function *function = used(module, from);
        if (!function)
            continue;
        function->setDoesNotThrow();
        if (Function *there = module.getFunction(to))
            function->replaceAllUsesWith(there);
        else
            function->setName(to);
    }
}

} // namespace durumcc::ido
