// Does each region of a program two times, to test that it can be done: the second time from its
// live-ins alone, and upon the memory that the first time has left behind. The program has to do
// what it does without that (compiler/tests/regions).
#pragma once

#include "ido/regions.h"

#include <optional>

namespace durumcc::ido {

// regions-twice<everywhere;leave-out=N;one-turn>, or with less in the brackets.
struct Twice {
    // As if each function was called in a section.
    bool is_everywhere = false;
    Omitted omitted;
};

// Nothing, if it is the name of something else.
std::optional<Twice> twice_named(llvm::StringRef name);

void do_twice(llvm::Module &module, llvm::ModuleAnalysisManager &analyses, Twice options);

} // namespace durumcc::ido
