// Where objects may be declared (paper, §3.6 and §3.7): NVM is in heaps, so a variable, parameter,
// value or member has no storage there by its own declaration.
#include "checks.h"
#include "types.h"

#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

namespace nvl {
namespace {

using namespace clang;

void report_only(State &state, SourceLocation location, QualType type) {
    const FieldDecl *member = nvm_only_member(type);
    report(state.diagnostics(), location, Diag::Only) << spelled(state.context, type);
    note(state.diagnostics(), member->getLocation(), "because of its member %0") << member;
}

// Takes away the `nvl` that stands in the declaration itself, before its first star.
FixItHint without_qualifier(State &state, TypeLoc type) {
    for (; !type.isNull() && !type.getAs<PointerTypeLoc>(); type = type.getNextTypeLoc()) {
        auto attributed = type.getAs<AttributedTypeLoc>();
        const Attr *attribute = attributed ? attributed.getAttr() : nullptr;
        if (!attribute || !isa<AddressSpaceAttr>(attribute))
            continue;
        SourceLocation location = attribute->getLocation();
        const SourceManager &sources = state.context.getSourceManager();
        // It comes from the macro, so the macro's name goes, and the blank behind it.
        if (!location.isMacroID())
            return FixItHint();
        CharSourceRange range = sources.getExpansionRange(location);
        SourceLocation end =
            Lexer::getLocForEndOfToken(range.getEnd(), 0, sources, state.context.getLangOpts());
        bool has_blank = end.isValid() && *sources.getCharacterData(end) == ' ';
        return FixItHint::CreateRemoval(CharSourceRange::getCharRange(
            range.getBegin(), has_blank ? end.getLocWithOffset(1) : end));
    }
    return FixItHint();
}

// The value of the object is read from NVM or replaced there, as a whole: `*p = *q`.
bool is_in_nvm(const Expr *object) {
    return is_nvl(object->getType());
}

} // namespace

void check_variable(State &state, const VarDecl *variable) {
    QualType type = variable->getType();
    if (!isa<ParmVarDecl>(variable)) {
        if (is_nvl_wp(type)) {
            report(state.diagnostics(), variable->getLocation(), Diag::WeakPlace);
            return;
        }
        if (is_nvl(type)) {
            report(state.diagnostics(), variable->getLocation(), Diag::Storage) << variable;
            return;
        }
    }
    if (nvm_only_member(type))
        report_only(state, variable->getLocation(), type);
}

void check_parameter(State &state, const ParmVarDecl *parameter) {
    const TypeSourceInfo *written = parameter->getTypeSourceInfo();
    QualType type = written ? written->getType() : parameter->getType();
    SourceLocation location = parameter->getLocation();
    if (is_nvl_wp(type))
        report(state.diagnostics(), location, Diag::WeakPlace);
    else if (is_nvl(type) && !type->isArrayType())
        report(state.diagnostics(), location, Diag::Parameter)
            << parameter
            << (written ? without_qualifier(state, written->getTypeLoc()) : FixItHint());
    // An attribute of its own would have mended it.
    else if (is_nvl(type) && parameter->isInvalidDecl())
        report(state.diagnostics(), location, Diag::ArrayParameter) << parameter;
}

void check_function(State &state, const FunctionDecl *function) {
    QualType type = function->getReturnType();
    if (is_nvl_wp(type))
        report(state.diagnostics(), function->getLocation(), Diag::WeakPlace);
    else if (is_nvl(type))
        report(state.diagnostics(), function->getLocation(), Diag::Return)
            << function << without_qualifier(state, function->getFunctionTypeLoc().getReturnLoc());
    else if (nvm_only_member(type))
        report_only(state, function->getLocation(), type);
}

void check_member(State &state, const FieldDecl *member) {
    QualType type = member->getType();
    // Clang has reported what is wrong with it.
    if (type->isFunctionType() || element(type)->isIncompleteType() ||
        record_of(type) == member->getParent())
        return;
    SourceLocation location = member->getLocation();
    if (is_nvl_wp(type)) {
        if (is_nvl_pointer(element(type)))
            report(state.diagnostics(), location, Diag::Member) << member;
        else
            report(state.diagnostics(), location, Diag::WeakType) << spelled(state.context, type);
    } else if (is_nvl(type)) {
        report(state.diagnostics(), location, Diag::Member) << member;
    }
}

void check_record(State &state, const RecordDecl *record) {
    if (!record->isUnion())
        return;
    for (const FieldDecl *member : record->fields())
        if (has_nvl_pointer(member->getType()))
            report(state.diagnostics(), member->getLocation(), Diag::Union) << member;
}

void check_literal(State &state, const CompoundLiteralExpr *literal) {
    QualType type = literal->getType();
    if (is_nvl(type) || is_nvl_wp(type))
        report(state.diagnostics(), literal->getBeginLoc(), Diag::Storage) << "the literal";
    else if (nvm_only_member(type))
        report_only(state, literal->getBeginLoc(), type);
}

// `p->m` and `*p`, where p leads to volatile memory, of a struct that is in NVM only.
void check_volatile_object(State &state, const Expr *expression) {
    const Expr *object = nullptr;
    if (const auto *member = dyn_cast<MemberExpr>(expression)) {
        object = member->getBase();
        QualType type = object->getType();
        if (member->isArrow()) {
            QualType target = type->getPointeeType();
            if (!is_nvl(target) && nvm_only_member(target))
                report_only(state, member->getMemberLoc(), target);
            return;
        }
        // The struct that this one is a member of has been looked at.
        if (isa<MemberExpr>(object->IgnoreParens()))
            return;
    } else if (const auto *unary = dyn_cast<UnaryOperator>(expression)) {
        if (unary->getOpcode() == UO_Deref)
            object = unary;
    } else if (const auto *subscript = dyn_cast<ArraySubscriptExpr>(expression)) {
        object = subscript;
    }
    if (!object || !object->isLValue() || is_in_nvm(object))
        return;
    // A variable has been reported where it is declared.
    if (isa<DeclRefExpr>(object->IgnoreParens()))
        return;
    if (isa<MemberExpr>(expression) || !nvm_only_member(object->getType()))
        return;
    report_only(state, object->getExprLoc(), object->getType());
}

} // namespace nvl
