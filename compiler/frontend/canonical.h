// Texts that say what a type of C is, the same ones wherever the program is compiled.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Type.h"

#include <string>

namespace nvl {

// What the store keeps about a type: layout and pointers (docs/format/types.md).
// Pointers to what `is_named` does not say lead to anything.
std::string canonical_text(
    clang::ASTContext &context, clang::QualType type,
    llvm::function_ref<bool(clang::QualType)> is_named = [](clang::QualType) { return true; });

// What a program must agree on to use a heap (docs/reference/nvl-ir.md): beyond the layout also
// bit-fields, members of unions, enumerators, and the kinds of floating-point numbers.
std::string checked_text(clang::ASTContext &context, clang::QualType type);

// The hash of docs/format/types.md.
uint64_t hash(llvm::StringRef text);

// Whether there are texts of the type: all that it leads to must be defined, without errors.
struct Reach {
    // A type without a definition, or null.
    const clang::RecordDecl *missing = nullptr;
    // Clang has reported why not.
    bool is_sound = true;
};
Reach reach(clang::QualType type);

} // namespace nvl
