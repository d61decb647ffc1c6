// Variables that last (-fido): by an attribute, or by a list of names for sources that nobody
// changes.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/StringSet.h"

namespace nvl {

class Lasting {
  public:
    // The list that the driver's header has, if this is it.
    void read_list(const clang::Decl *declaration);

    // Behind a precompiled header.
    void begin_behind_header(clang::ASTContext &context);

    // Gives variables their annotations, before code is made of them.
    void look_at(clang::Decl *declaration);

  private:
    bool is_listed(const clang::VarDecl &variable) const;
    void annotate(clang::VarDecl &variable) const;
    friend class LastingVisitor;

    llvm::StringSet<> names;
};

} // namespace nvl
