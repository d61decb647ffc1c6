// Weak pointers (paper, §3.7) are told from strong ones by the member that they are in: CodeGen
// annotates an access that names the member. A pointer to one would be a pointer to a strong
// pointer, so there is none: neither `&p->member` nor an array of weak pointers that becomes a
// pointer.
#include "checks.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"

namespace nvl {
namespace {

using namespace clang;

// The weak member that an lvalue is, or is an element of.
const FieldDecl *weak_member(const Expr *expression) {
    expression = expression->IgnoreParens();
    if (const auto *member = dyn_cast<MemberExpr>(expression)) {
        const auto *field = dyn_cast<FieldDecl>(member->getMemberDecl());
        return field && is_weak(field) ? field : nullptr;
    }
    const Expr *array = nullptr;
    if (const auto *subscript = dyn_cast<ArraySubscriptExpr>(expression))
        array = subscript->getBase();
    else if (const auto *unary = dyn_cast<UnaryOperator>(expression))
        array = unary->getOpcode() == UO_Deref ? unary->getSubExpr() : nullptr;
    const auto *decay = array ? dyn_cast<ImplicitCastExpr>(array->IgnoreParens()) : nullptr;
    if (!decay || decay->getCastKind() != CK_ArrayToPointerDecay)
        return nullptr;
    return weak_member(decay->getSubExpr());
}

} // namespace

void note_weak(State &state, const Expr *expression) {
    if (const auto *subscript = dyn_cast<ArraySubscriptExpr>(expression)) {
        state.may_be_weak.insert(subscript->getBase()->IgnoreParens());
    } else if (const auto *unary = dyn_cast<UnaryOperator>(expression)) {
        if (unary->getOpcode() == UO_Deref)
            state.may_be_weak.insert(unary->getSubExpr()->IgnoreParens());
    }
}

void check_weak(State &state, const Expr *expression) {
    const Expr *named = nullptr;
    if (const auto *unary = dyn_cast<UnaryOperator>(expression)) {
        if (unary->getOpcode() == UO_AddrOf)
            named = unary->getSubExpr();
    } else if (const auto *cast = dyn_cast<ImplicitCastExpr>(expression)) {
        if (cast->getCastKind() == CK_ArrayToPointerDecay)
            named = cast->getSubExpr();
    }
    if (!named || state.may_be_weak.contains(expression))
        return;
    if (const FieldDecl *member = weak_member(named))
        report(state.diagnostics(), expression->getExprLoc(), Diag::WeakAddress) << member;
}

} // namespace nvl
