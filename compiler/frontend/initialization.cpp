// A local variable that holds pointers into NVM and is not initialized by the program starts as
// null (paper, §3.7): whatever looks at it, a debugger or the search for roots, finds a pointer or
// none.
#include "checks.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"

namespace nvl {

void initialize(State &state, clang::VarDecl *variable) {
    if (variable->isInvalidDecl() || !variable->isLocalVarDecl() || !variable->hasLocalStorage() ||
        variable->hasInit() || llvm::isa<clang::ParmVarDecl>(variable) ||
        !has_nvl_pointer(variable->getType()))
        return;
    clang::ASTContext &context = state.context;
    clang::QualType type = variable->getType();
    clang::SourceLocation end = variable->getEndLoc();
    clang::Expr *null;
    // An array whose length is known at run time only takes an empty list, as in C23.
    if (type->isVariableArrayType()) {
        null = new (context) clang::InitListExpr(context, end, {}, end);
        null->setType(type);
    } else {
        null = new (context) clang::ImplicitValueInitExpr(type.getUnqualifiedType());
    }
    variable->setInit(null);
    variable->setInitStyle(clang::VarDecl::CInit);
}

} // namespace nvl
