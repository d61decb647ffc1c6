// Conversions of pointers (paper, §3.4 and §3.8). Clang refuses implicit ones that add or remove an
// address space; explicit ones, comparisons and void pointers it lets through.
#include "checks.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"

namespace nvl {
namespace {

using namespace clang;

// Whether the two types differ in `nvl` anywhere behind their pointers: `nvl int *` and `int *`,
// but also pointers to such pointers and functions with such parameters.
bool differ_in_nvl(ASTContext &context, QualType left, QualType right) {
    if (left->isPointerType() && right->isPointerType()) {
        QualType to_left = left->getPointeeType();
        QualType to_right = right->getPointeeType();
        if (is_nvl(to_left) != is_nvl(to_right))
            return true;
        return differ_in_nvl(context, element(to_left), element(to_right));
    }
    const auto *from = left->getAs<FunctionProtoType>();
    const auto *to = right->getAs<FunctionProtoType>();
    if (!from || !to)
        return false;
    if (differ_in_nvl(context, from->getReturnType(), to->getReturnType()))
        return true;
    unsigned shared = std::min(from->getNumParams(), to->getNumParams());
    for (unsigned i = 0; i < shared; i++)
        if (differ_in_nvl(context, from->getParamType(i), to->getParamType(i)))
            return true;
    return false;
}

// A target that may be looked at as bytes of no particular type.
bool is_bytes(QualType target) {
    return target->isVoidType() || target->isCharType() || target->isIncompleteType();
}

// The functions of nvl.h that return an object of the type that the caller named.
bool is_typed_by_call(const Expr *operand) {
    const auto *call = dyn_cast<CallExpr>(operand->IgnoreParenImpCasts());
    const FunctionDecl *callee = call ? call->getDirectCallee() : nullptr;
    return callee && callee->getIdentifier() && callee->getName().starts_with("__nvl_");
}

bool is_null(ASTContext &context, const Expr *operand) {
    return operand->IgnoreParenCasts()->isNullPointerConstant(context,
                                                              Expr::NPC_ValueDependentIsNotNull);
}

void check_targets(State &state, const CastExpr *cast, QualType from, QualType to) {
    ASTContext &context = state.context;
    auto refuse = [&](Diag diag) {
        report(state.diagnostics(), cast->getExprLoc(), diag)
            << spelled(state.context, from) << spelled(state.context, to) << cast->getSourceRange();
    };
    if (differ_in_nvl(context, from, to))
        return refuse(Diag::CastQualifier);
    QualType source = from->getPointeeType();
    QualType target = to->getPointeeType();
    if (is_nvl(source)) {
        if (target->isVoidType())
            return;
        if (source->isVoidType())
            return refuse(Diag::CastVoid);
        if (context.hasSameUnqualifiedType(source, target) ||
            context.typesAreCompatible(context.getCanonicalType(source).getUnqualifiedType(),
                                       context.getCanonicalType(target).getUnqualifiedType(), true))
            return;
        // Data may be seen as other data. Where a count hangs on a store it must stay what it is.
        if (has_nvl_pointer(source) || has_nvl_pointer(target) || source->isIncompleteType() ||
            target->isIncompleteType())
            // An array of unknown bounds is incomplete, and says enough about its elements.
            if (!context.hasSameUnqualifiedType(element(source), element(target)))
                return refuse(Diag::CastType);
        return;
    }
    // Volatile memory that holds pointers into NVM.
    bool from_pointer = is_nvl_pointer(element(source));
    bool to_pointer = is_nvl_pointer(element(target));
    if (from_pointer != to_pointer && !is_bytes(source) && !is_bytes(target))
        refuse(Diag::CastType);
}

} // namespace

void check_cast(State &state, const CastExpr *cast) {
    if (state.reported.contains(cast))
        return;
    QualType from = cast->getSubExpr()->getType();
    QualType to = cast->getType();
    switch (cast->getCastKind()) {
    case CK_IntegralToPointer:
        if (is_nvl_pointer(to) && !is_null(state.context, cast->getSubExpr()))
            report(state.diagnostics(), cast->getExprLoc(), Diag::CastInteger)
                << spelled(state.context, from) << spelled(state.context, to)
                << cast->getSourceRange();
        break;
    case CK_BitCast:
    case CK_AddressSpaceConversion:
    case CK_NoOp:
        if (from->isPointerType() && to->isPointerType() &&
            !is_null(state.context, cast->getSubExpr()) && !is_typed_by_call(cast->getSubExpr()))
            check_targets(state, cast, from, to);
        break;
    default:
        break;
    }
}

void check_comparison(State &state, const BinaryOperator *comparison) {
    if (!comparison->isComparisonOp())
        return;
    const Expr *left = comparison->getLHS()->IgnoreParenImpCasts();
    const Expr *right = comparison->getRHS()->IgnoreParenImpCasts();
    ASTContext &context = state.context;
    auto decayed = [&](QualType type) {
        return type->isArrayType() ? context.getArrayDecayedType(type) : type;
    };
    QualType left_type = decayed(left->getType());
    QualType right_type = decayed(right->getType());
    if (!left_type->isPointerType() || !right_type->isPointerType())
        return;
    if (is_null(context, left) || is_null(context, right))
        return;
    if (!differ_in_nvl(context, left_type, right_type))
        return;
    state.reported.insert(comparison->getLHS());
    state.reported.insert(comparison->getRHS());
    report(state.diagnostics(), comparison->getOperatorLoc(), Diag::Compare)
        << spelled(state.context, left_type) << spelled(state.context, right_type);
}

} // namespace nvl
