// What the store is told of types of programs that nobody changed.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Type.h"

#include <optional>
#include <string>

namespace nvl {

// The text of docs/format/types.md. Nothing where it could hide a pointer (a union with one, a base
// class, a reference), and of what is not defined here.
std::optional<std::string> layout_text(clang::ASTContext &context, clang::QualType type);

} // namespace nvl
