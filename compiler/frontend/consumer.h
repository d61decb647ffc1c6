// The front end's part in a compilation: it sees each declaration before code is made of it.
#pragma once

#include "clang/AST/ASTConsumer.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"

namespace nvl {

// What the driver tells of.
struct Parts {
    bool passes = true;
    // Sections are to be durable: -fido.
    bool sections = false;
};

class Action : public clang::PluginASTAction {
  protected:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &compiler,
                                                          llvm::StringRef file) override;
    bool ParseArgs(const clang::CompilerInstance &compiler,
                   const std::vector<std::string> &arguments) override;
    // Checks come before code generation, which takes the tree as they leave it.
    ActionType getActionType() override { return AddBeforeMainAction; }

  private:
    Parts parts;
};

} // namespace nvl
