// What only the syntax tree tells about the statement behind `#pragma nvl atomic`: pragma.cpp has
// put it into a block that begins with the declaration of a struct __nvl_tx.
#include "checks.h"

#include "clang/AST/Decl.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/AST/StmtOpenMP.h"

namespace nvl {
namespace {

using namespace clang;

bool is_transaction(const CompoundStmt *block) {
    const auto *first = block->body_empty() ? nullptr : dyn_cast<DeclStmt>(block->body_front());
    const auto *variable =
        first && first->isSingleDecl() ? dyn_cast<VarDecl>(first->getSingleDecl()) : nullptr;
    const auto *type = variable ? variable->getType()->getAs<RecordType>() : nullptr;
    return type && type->getDecl()->getName() == "__nvl_tx";
}

// Clang makes a function of its own of such a region before the passes see it, for other threads.
class Threads : public RecursiveASTVisitor<Threads> {
  public:
    Threads(State &state, const CompoundStmt *outer) : state(state), outer(outer) {}

    // A transaction in the transaction is walked by itself.
    bool TraverseCompoundStmt(CompoundStmt *block, DataRecursionQueue * = nullptr) {
        if (block != outer && is_transaction(block))
            return true;
        return RecursiveASTVisitor<Threads>::TraverseCompoundStmt(block);
    }

    bool VisitOMPExecutableDirective(OMPExecutableDirective *directive) {
        OpenMPDirectiveKind kind = directive->getDirectiveKind();
        if (isOpenMPParallelDirective(kind) || isOpenMPTaskingDirective(kind) ||
            isOpenMPTargetExecutionDirective(kind) || isOpenMPTeamsDirective(kind))
            report(state.diagnostics(), directive->getBeginLoc(), Diag::OpenMP);
        return true;
    }

  private:
    State &state;
    const CompoundStmt *outer;
};

} // namespace

void check_transaction(State &state, const CompoundStmt *block) {
    if (!is_transaction(block))
        return;
    const Stmt *attached = block->body_back();
    if (isa<DeclStmt>(attached) && block->size() > 1)
        report(state.diagnostics(), attached->getBeginLoc(), Diag::PragmaDeclaration);
    if (state.context.getLangOpts().OpenMP)
        Threads(state, block).TraverseStmt(const_cast<CompoundStmt *>(block));
}

} // namespace nvl
