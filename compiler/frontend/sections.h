// What -fido asks of a compilation: that the mark is there (compiler/include/durum_ido.h), and
// NVL-C is not.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"

namespace nvl {

class Sections {
  public:
    Sections(bool is_asked, bool may_compile) : is_asked(is_asked), may_compile(may_compile) {}

    // What a precompiled header has declared already.
    void begin_behind_header(clang::ASTContext &context);

    // Before it is known what else there is in the declaration.
    void look_at(const clang::Decl *declaration);

    // The first declaration of nvl.h.
    void refuse_nvl(const clang::Decl *declaration);

    void end(clang::ASTContext &context);

    bool are_here() const { return is_marked; }

  private:
    const bool is_asked;
    const bool may_compile;
    // The mark has been declared.
    bool is_marked = false;
};

} // namespace nvl
