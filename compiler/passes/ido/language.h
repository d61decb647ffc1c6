// Lock-based C and C++ whose sections are durable (-fido).
#pragma once

#include "common/language.h"

namespace durumcc::ido {

extern const Language &language;

// As the program calls it, if it has two versions.
llvm::StringRef name_of(const llvm::Function &function);

// What the command line asked for, by the names of its options.
struct Options {
#define DURUMCC_OPTION(language, member, option, bit, text) DURUMCC_OPTION_##language(member)
#define DURUMCC_OPTION_nvl(member)
#define DURUMCC_OPTION_ido(member) bool member = false;
#include "options.def"
#undef DURUMCC_OPTION_nvl
#undef DURUMCC_OPTION_ido
};

Options options_of(const llvm::Module &module);

} // namespace durumcc::ido
