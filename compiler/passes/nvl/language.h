// NVL-C, as the passes for all languages see it.
#pragma once

#include "common/language.h"

#include "llvm/IR/Type.h"
#include "llvm/IR/Value.h"

namespace durumcc::nvl {

// The address space of objects in NVM.
constexpr unsigned nvm_space = 1;

inline bool is_nvm(const llvm::Type *type) {
    return type->isPointerTy() && type->getPointerAddressSpace() == nvm_space;
}
inline bool is_nvm(const llvm::Value *value) {
    return is_nvm(value->getType());
}

extern const Language &language;

// What the command line asked for, by the names of its options: `no_checks` is -fnvl-no-checks.
struct Options {
#define DURUMCC_OPTION(language, member, option, bit, text) DURUMCC_OPTION_##language(member)
#define DURUMCC_OPTION_nvl(member) bool member = false;
#define DURUMCC_OPTION_ido(member)
#include "options.def"
#undef DURUMCC_OPTION_nvl
#undef DURUMCC_OPTION_ido
};

Options options_of(const llvm::Module &module);

} // namespace durumcc::nvl
