// What the clauses of `#pragma nvl atomic` name. pragma.cpp has left it where any expression may
// stand, so that Clang says nothing about its type:
//
//   __nvl_tx_begin(&tx, kind, __nvl_values(2, h, g), (nvl_heap_t *[]){0, 0})
//   __nvl_tx_range(&tx, kind, 0, ((void)(a)[i], __nvl_values(1, n)), 0)
//   __nvl_tx_range(&tx, kind, 0, ((void)(*p), 1), 0)
//
// and here it comes where the functions take it:
//
//   __nvl_tx_begin(&tx, kind, 2, (nvl_heap_t *[]){h, g})
//   __nvl_tx_range(&tx, kind, &a[i], (long long)n, sizeof(a[i]))
//   __nvl_tx_range(&tx, kind, &*p, 1, sizeof(*p))
#include "checks.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "llvm/ADT/StringExtras.h"

namespace nvl {
namespace {

using namespace clang;

bool calls(const CallExpr *call, StringRef name) {
    const FunctionDecl *callee = call->getDirectCallee();
    return callee && callee->getIdentifier() && callee->getName() == name;
}

// The call of __nvl_values in an argument, or null.
CallExpr *values(Expr *argument) {
    auto *call = dyn_cast<CallExpr>(argument->IgnoreParenImpCasts());
    return call && is_of_clauses(call) ? call : nullptr;
}

Expr *number(ASTContext &context, uint64_t value, QualType type, SourceLocation location) {
    return IntegerLiteral::Create(context, llvm::APInt(context.getIntWidth(type), value), type,
                                  location);
}

Expr *converted(ASTContext &context, Expr *value, QualType type, CastKind kind) {
    if (context.hasSameType(value->getType(), type))
        return value;
    return ImplicitCastExpr::Create(context, type, kind, value, nullptr, VK_PRValue,
                                    FPOptionsOverride());
}

// Clang has told why an expression is none.
bool is_broken(const Expr *expression) {
    return expression->containsErrors() || expression->isTypeDependent();
}

bool is_null(ASTContext &context, const Expr *value) {
    return value->IgnoreParenCasts()->isNullPointerConstant(context,
                                                            Expr::NPC_ValueDependentIsNotNull);
}

std::string of_type(ASTContext &context, const Expr *expression) {
    return "of the type " + spelled(context, expression->IgnoreParenImpCasts()->getType());
}

bool is_heap(QualType type) {
    const auto *record = type->getAs<RecordType>();
    return record && record->getDecl()->getName() == "__nvl_heap";
}

// A handle, or as everywhere in C a pointer to void.
bool is_handle(QualType type) {
    if (!type->isPointerType())
        return false;
    QualType target = type->getPointeeType();
    return !target.hasQualifiers() && (is_heap(target) || target->isVoidType());
}

// What helps with something else in the place of a heap.
void advise_heap(State &state, const Expr *written, QualType type) {
    SourceLocation place = written->getBeginLoc();
    const auto *unary = dyn_cast<UnaryOperator>(written);
    if (written->getType()->isArrayType() && is_handle(type->getPointeeType()))
        note(state.diagnostics(), place, "name each heap of the array by itself");
    else if (unary && unary->getOpcode() == UO_AddrOf && is_handle(type->getPointeeType()))
        note(state.diagnostics(), place, "leave out '&'") << FixItHint::CreateRemoval(place);
    else if (type->isPointerType() && is_handle(type->getPointeeType()))
        note(state.diagnostics(), place, "name what it leads to")
            << FixItHint::CreateInsertion(place, "*");
    else if (is_nvl_pointer(type))
        note(state.diagnostics(), place,
             "name the heap that it leads into, and the object in another clause");
    else if (type->isFunctionPointerType() ||
             (type->isPointerType() && type->getPointeeType()->isCharType()))
        note(state.diagnostics(), place,
             "open the heap before the transaction, and name its handle here");
}

bool check_heap(State &state, const Expr *value) {
    ASTContext &context = state.context;
    bool is_nothing = is_null(context, value);
    if (is_handle(value->getType()) && !is_nothing)
        return true;
    const Expr *written = value->IgnoreParenImpCasts();
    report(state.diagnostics(), written->getBeginLoc(), Diag::ClauseHeap)
        << (is_nothing ? "null" : of_type(context, written)) << written->getSourceRange();
    if (!is_nothing)
        advise_heap(state, written, value->getType());
    return false;
}

// The array has as many elements as there are heaps.
void place_heaps(State &state, CallExpr *begin) {
    CallExpr *heaps = values(begin->getArg(2));
    auto *array = dyn_cast<CompoundLiteralExpr>(begin->getArg(3)->IgnoreParenImpCasts());
    auto *list = array ? dyn_cast<InitListExpr>(array->getInitializer()) : nullptr;
    if (!heaps || !list)
        return;
    ASTContext &context = state.context;
    InitListExpr *written =
        list->isSemanticForm() && list->getSyntacticForm() ? list->getSyntacticForm() : list;
    QualType type = context.getBaseElementType(list->getType());
    unsigned count = heaps->getNumArgs() - 1;
    for (unsigned i = 0; i < count; i++) {
        Expr *heap = heaps->getArg(i + 1);
        if (is_broken(heap) || !check_heap(state, heap))
            continue;
        heap = converted(context, heap, type.getUnqualifiedType(), CK_BitCast);
        list->setInit(i, heap);
        written->setInit(i, heap);
    }
    begin->setArg(2, number(context, count, context.IntTy, heaps->getExprLoc()));
}

// What an expression is that names no object in NVM; empty if it names one.
std::string other_than_object(ASTContext &context, const Expr *object) {
    QualType type = object->getType();
    if (type->isFunctionType())
        return "a function";
    if (!object->isLValue() && is_nvl_pointer(type))
        return "a pointer into it";
    if (!object->isLValue())
        return "a value " + of_type(context, object);
    if (!is_nvl(type) && is_nvl_pointer(type))
        return "the pointer itself, which is outside of it";
    if (!is_nvl(type))
        return "outside of it, " + of_type(context, object);
    if (object->refersToBitField())
        return "a bit-field, which has no address";
    if (object->getObjectKind() != OK_Ordinary)
        return "a part of a vector";
    if (type->isVoidType())
        return of_type(context, object) + ", whose size is not known";
    return "";
}

void advise_object(State &state, const Expr *object, SourceLocation place) {
    const Expr *bare = object->IgnoreParens();
    const auto *unary = dyn_cast<UnaryOperator>(bare);
    const auto *member = dyn_cast<MemberExpr>(bare);
    if (unary && unary->getOpcode() == UO_AddrOf && is_nvl(unary->getSubExpr()->getType()))
        note(state.diagnostics(), place, "leave out '&'") << FixItHint::CreateRemoval(place);
    else if (is_nvl_pointer(object->getType()))
        note(state.diagnostics(), place, "name what it leads to")
            << FixItHint::CreateInsertion(place, "*");
    else if (member && object->refersToBitField())
        note(state.diagnostics(), member->getMemberLoc(), "name the struct that it is in");
}

bool check_object(State &state, StringRef clause, const Expr *object, SourceLocation place) {
    std::string other = other_than_object(state.context, object);
    if (!other.empty()) {
        report(state.diagnostics(), place, Diag::ClauseObject)
            << clause << other << SourceRange(place, object->getEndLoc());
        advise_object(state, object, place);
        return false;
    }
    // Of other incomplete types Clang has told.
    return !object->getType()->isIncompleteType();
}

bool check_count(State &state, StringRef clause, const Expr *count) {
    std::string other;
    if (!count->getType()->isIntegerType())
        other = of_type(state.context, count);
    else if (auto value = count->getIntegerConstantExpr(state.context); value && *value < 0)
        other = llvm::toString(*value, 10);
    else
        return true;
    const Expr *written = count->IgnoreParenImpCasts();
    report(state.diagnostics(), written->getBeginLoc(), Diag::ClauseCount)
        << clause << other << written->getSourceRange();
    return false;
}

// The name behind __nvl_ of the constant.
StringRef name_of_kind(const Expr *kind) {
    const auto *constant = dyn_cast<DeclRefExpr>(kind->IgnoreParenImpCasts());
    StringRef name = constant ? constant->getDecl()->getName() : "";
    name.consume_front("__nvl_");
    return name;
}

// Without the parentheses of pragma.cpp.
SourceLocation begin_of(const Expr *object) {
    if (const auto *section = dyn_cast<ArraySubscriptExpr>(object))
        object = section->getLHS();
    if (const auto *parentheses = dyn_cast<ParenExpr>(object->IgnoreImpCasts()))
        object = parentheses->getSubExpr();
    return object->getBeginLoc();
}

void place_segment(State &state, CallExpr *range) {
    auto *both = dyn_cast<BinaryOperator>(range->getArg(3)->IgnoreParenImpCasts());
    auto *left = both ? dyn_cast<CStyleCastExpr>(both->getLHS()) : nullptr;
    if (!left || is_broken(both))
        return;
    ASTContext &context = state.context;
    Expr *object = left->getSubExpr()->IgnoreImpCasts();
    CallExpr *counted = values(both->getRHS());
    Expr *count = counted ? counted->getArg(1) : both->getRHS();
    StringRef clause = name_of_kind(range->getArg(1));
    SourceLocation place = begin_of(object);
    if (!check_object(state, clause, object, place) || !check_count(state, clause, count))
        return;
    QualType type = object->getType();
    Expr *start =
        UnaryOperator::Create(context, object, UO_AddrOf, context.getPointerType(type), VK_PRValue,
                              OK_Ordinary, place, /*CanOverflow=*/false, FPOptionsOverride());
    // The address of a weak pointer, too: it names bytes only.
    state.may_be_weak.insert(start);
    Expr *size = new (context)
        UnaryExprOrTypeTraitExpr(UETT_SizeOf, context.getTrivialTypeSourceInfo(type, place),
                                 context.getSizeType(), place, place);
    range->setArg(2, converted(context, start, range->getArg(2)->getType(), CK_BitCast));
    range->setArg(3, converted(context, count, context.LongLongTy, CK_IntegralCast));
    range->setArg(4, size);
}

} // namespace

bool is_of_clauses(const CallExpr *call) {
    return calls(call, "__nvl_values");
}

void place_clause(State &state, CallExpr *call) {
    if (calls(call, "__nvl_tx_begin") && call->getNumArgs() == 4)
        place_heaps(state, call);
    else if (calls(call, "__nvl_tx_range") && call->getNumArgs() == 5)
        place_segment(state, call);
}

} // namespace nvl
