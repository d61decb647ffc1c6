// What the store is told of types of programs that nobody changed: where their pointers are. What
// these lead to tells its own type.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Type.h"

#include <optional>
#include <string>

namespace nvl {

// What pointers lead to that the file does not define.
enum class Hidden {
    // A file that defines it would have another text.
    Refused,
    // It may be anything.
    Any,
};

// The text of docs/format/types.md. Nothing where it could hide a pointer (a union with one, a base
// class, a reference); `reason` says which.
std::optional<std::string> layout_text(clang::ASTContext &context, clang::QualType type,
                                       Hidden hidden, std::string *reason = nullptr);

} // namespace nvl
