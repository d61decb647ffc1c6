// What a type says about where an object is stored and where pointers lead.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Type.h"

#include <string>

namespace nvl {

// The address spaces that nvl.h gives to the qualifiers.
constexpr unsigned nvl_space = 1;
constexpr unsigned nvl_wp_space = 2;

// The annotation of weak members, which reaches the intermediate code, and the tag of those that
// are declared with `nvl`, which does not.
constexpr const char weak_annotation[] = "nvl_wp";
constexpr const char stored_tag[] = "nvl";

// Whether an object of the type is stored in NVM: nvl-qualified, or an array of such.
bool is_nvl(clang::QualType type);
bool is_nvl_wp(clang::QualType type);

// Whether it is a pointer into NVM (and not an array of them).
bool is_nvl_pointer(clang::QualType type);

// Whether an object of the type has pointers into NVM, in its members or elements too.
bool has_nvl_pointer(clang::QualType type);

// Whether a member was declared weak, or with `nvl` of its own.
bool is_weak(const clang::FieldDecl *field);
bool is_declared_stored(const clang::FieldDecl *field);

// The member that makes a struct one that exists in NVM only (paper, §3.7), or null. Looks into
// members and elements.
const clang::FieldDecl *nvm_only_member(clang::QualType type);

// The type in the words of a program, in quotes: `'nvl struct list *nvl *'`. Clang would show the
// attributes behind a qualifier, or the qualifier in the wrong place.
std::string spelled(const clang::ASTContext &context, clang::QualType type);

// A text of Clang's, with qualifiers in the place of the attributes behind them.
std::string with_qualifiers(std::string text);

// The element of arrays of arrays, or the type itself.
clang::QualType element(clang::QualType type);

// Whether Clang can lay out objects of the type: no member of it, or of a member, had an error.
bool is_sound(clang::QualType type);

// The struct or union that an object is or consists of, with its definition, or null.
const clang::RecordDecl *record_of(clang::QualType type);

} // namespace nvl
