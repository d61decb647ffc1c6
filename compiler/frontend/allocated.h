// What memory that a program takes of the heap holds (-fido): the type in each call that allocates.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/StringMap.h"

namespace nvl {

class Allocated {
  public:
    // The driver's header has said what is asked for, if this is it.
    void read_options(const clang::Decl *declaration);

    // Behind a precompiled header.
    void begin_behind_header(clang::ASTContext &context);

    // Calls of a function that allocates become calls of one whose name says the type, or why there
    // is none; before code is made of them.
    void look_at(clang::Decl *declaration);

  private:
    friend class AllocatedVisitor;

    // Whether the function gives memory of the heap.
    bool allocates(const clang::FunctionDecl &function) const;

    // The function under the name that the passes look for.
    clang::FunctionDecl *named(clang::FunctionDecl &function, const std::string &name);

    bool takes_malloc = false;
    llvm::StringMap<clang::FunctionDecl *> functions;
};

} // namespace nvl
