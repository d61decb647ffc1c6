// Descriptors of types, for the functions of nvl.h that allocate an object or hand out the root.
//
// The macros name the type by a call that is never made:
//
//   __nvl_alloc(heap, n, sizeof(T), __nvl_type_of((__typeof__(T) *)0))
//
// and the call is replaced here by a string literal, which docs/reference/nvl-ir.md specifies:
//
//   nvl1 SIZE ALIGN CHECKSUM
//   the type's text (docs/format/types.md)
#include "canonical.h"
#include "checks.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace nvl {
namespace {

using namespace clang;

std::string descriptor(ASTContext &context, QualType type) {
    uint64_t checksum = hash(checked_text(context, type));
    return "nvl1 " + std::to_string(context.getTypeSizeInChars(type).getQuantity()) + " " +
           std::to_string(context.getTypeAlignInChars(type).getQuantity()) + " " +
           llvm::utohexstr(checksum, /*LowerCase=*/true, /*Width=*/16) + "\n" +
           canonical_text(context, type);
}

Expr *literal(ASTContext &context, const std::string &text, SourceLocation location) {
    QualType array = context.getStringLiteralArrayType(context.CharTy, text.size());
    Expr *expression = StringLiteral::Create(context, text, StringLiteralKind::Ordinary,
                                             /*Pascal=*/false, array, location);
    QualType pointer = context.getArrayDecayedType(array);
    expression = ImplicitCastExpr::Create(context, pointer, CK_ArrayToPointerDecay, expression,
                                          nullptr, VK_PRValue, FPOptionsOverride());
    return ImplicitCastExpr::Create(context, context.getPointerType(context.CharTy.withConst()),
                                    CK_NoOp, expression, nullptr, VK_PRValue, FPOptionsOverride());
}

// Which argument is the descriptor, or -1.
int descriptor_argument(const CallExpr *call) {
    const FunctionDecl *callee = call->getDirectCallee();
    if (!callee || !callee->getIdentifier())
        return -1;
    return llvm::StringSwitch<int>(callee->getName())
        .Case("__nvl_alloc", 3)
        .Case("__nvl_get_root", 1)
        .Case("__nvl_root_is", 1)
        .Case("__nvl_set_root", 2)
        .Case("__nvl_type", 0)
        .Default(-1);
}

bool has_size(ASTContext &context, QualType type) {
    return type->isObjectType() && !type->isIncompleteType() && !type->isVariablyModifiedType() &&
           !context.getTypeSizeInChars(type).isZero();
}

bool is_null_root(ASTContext &context, const CallExpr *call) {
    return call->getDirectCallee()->getName() == "__nvl_set_root" &&
           call->getArg(1)->IgnoreParenCasts()->isNullPointerConstant(
               context, Expr::NPC_ValueDependentIsNotNull);
}

} // namespace

void fill_descriptor(State &state, CallExpr *call) {
    int index = descriptor_argument(call);
    if (index < 0 || unsigned(index) >= call->getNumArgs())
        return;
    const auto *named = dyn_cast<CallExpr>(call->getArg(index)->IgnoreParenImpCasts());
    if (!named || named->getNumArgs() != 1)
        return;
    ASTContext &context = state.context;
    QualType type = named->getArg(0)->IgnoreParenImpCasts()->getType()->getPointeeType();
    if (type.isNull())
        return;
    // Messages show what the program wrote, not the macro's `__typeof__`.
    while (isa<TypeOfType>(type.getTypePtr()) || isa<TypeOfExprType>(type.getTypePtr()))
        type = type.getSingleStepDesugaredType(context);
    SourceLocation location = call->getExprLoc();
    // nvl_set_root(heap, NULL): that there is no root needs no type, and the function takes one.
    if (type->isVoidType() && is_null_root(context, call))
        type = context.CharTy;
    Reach reached = reach(type);
    if (!reached.is_sound)
        return;
    if (!has_size(context, type)) {
        report(state.diagnostics(), location, Diag::TypeArgument) << spelled(context, type);
        return;
    }
    if (reached.missing) {
        report(state.diagnostics(), location, Diag::Incomplete)
            << spelled(context, type) << spelled(context, context.getRecordType(reached.missing));
        return;
    }
    call->setArg(index, literal(context, descriptor(context, type), named->getExprLoc()));
}

} // namespace nvl
