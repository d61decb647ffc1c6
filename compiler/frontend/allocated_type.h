// What an expression that allocates says of what the memory will hold.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/ExprCXX.h"

#include <optional>
#include <string>

namespace nvl {

struct AllocatedType {
    // As docs/format/types.md has it. An object of more bytes than it says is a row.
    std::optional<std::string> text;
    // Why there is none: nobody may take it for memory without pointers.
    std::string reason;
};

// Of a call with these sizes (two are a number of elements and the size of one) whose result
// becomes a pointer to `target`; that is null where it stays a `void *`.
AllocatedType type_of_call(clang::ASTContext &context, llvm::ArrayRef<const clang::Expr *> sizes,
                           clang::QualType target);

AllocatedType type_of_new(clang::ASTContext &context, const clang::CXXNewExpr &made);

} // namespace nvl
