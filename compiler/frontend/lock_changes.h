// durum_locks(CHANGE) of nv.h: functions that return with more locks, or fewer (-fido).
#pragma once

#include "clang/AST/Decl.h"

namespace nvl {

// Gives functions that are declared so the symbols that tell it, before code is made of them.
void name_lock_changes(clang::Decl *declaration);

} // namespace nvl
