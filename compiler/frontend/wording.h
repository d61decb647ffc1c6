// Clang's own words where they tell of what nvl.h makes of a qualifier.
#pragma once

#include "checks.h"

namespace nvl {

// From the next message on: where Clang would print the attribute behind a qualifier, it prints the
// qualifier.
void reword_messages(clang::ASTContext &context);

} // namespace nvl
