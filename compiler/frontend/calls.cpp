// Calls of functions that know nothing about NVM (paper, §3.8), and inline assembly.
//
// A prototype of the program's own is checked by Clang like an assignment. What it lets through:
// library functions that it knows itself, whose parameters it adapts to any address space, and
// arguments without a parameter.
#include "checks.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "clang/AST/Stmt.h"
#include "clang/Basic/Builtins.h"

namespace nvl {
namespace {

using namespace clang;

// The memory functions that work on NVM: CodeGen makes intrinsics of them, which the passes see.
enum class Memory { No, Copy, Set, Compare };

// `name` may be of the fortified kind.
Memory memory_function(StringRef name) {
    name.consume_front("__builtin_");
    if (name.consume_back("_chk"))
        name.consume_front("__");
    if (name == "memcpy" || name == "memmove")
        return Memory::Copy;
    if (name == "memset" || name == "bzero")
        return Memory::Set;
    if (name == "memcmp" || name == "bcmp")
        return Memory::Compare;
    return Memory::No;
}

QualType target_of(const Expr *argument) {
    QualType type = argument->IgnoreParenImpCasts()->getType();
    if (type->isArrayType())
        return element(type);
    return type->isPointerType() ? element(type->getPointeeType()) : QualType();
}

void check_copy(State &state, const CallExpr *call) {
    QualType target = target_of(call->getArg(0));
    QualType source = target_of(call->getArg(1));
    if (target.isNull() || source.isNull() ||
        (!has_nvl_pointer(target) && !has_nvl_pointer(source)))
        return;
    // A weak pointer is something else outside NVM.
    bool leaves_nvm =
        (nvm_only_member(target) || nvm_only_member(source)) && is_nvl(target) != is_nvl(source);
    if (!leaves_nvm && state.context.hasSameUnqualifiedType(target, source))
        return;
    report(state.diagnostics(), call->getExprLoc(), Diag::CastType)
        << spelled(state.context, source) << spelled(state.context, target);
}

void check_set(State &state, const CallExpr *call) {
    QualType target = target_of(call->getArg(0));
    if (target.isNull() || !has_nvl_pointer(target) || call->getNumArgs() < 3)
        return;
    std::optional<llvm::APSInt> value = call->getArg(1)->getIntegerConstantExpr(state.context);
    if (!value || *value != 0)
        report(state.diagnostics(), call->getArg(1)->getExprLoc(), Diag::Memset)
            << spelled(state.context, target);
}

void check_library_call(State &state, const CallExpr *call, const FunctionDecl *callee,
                        const Expr *argument) {
    switch (memory_function(callee->getName())) {
    case Memory::No: {
        QualType type = argument->IgnoreParenImpCasts()->getType();
        // A message without `nvl` would not tell what is wrong with an array.
        if (type->isArrayType())
            type = state.context.getArrayDecayedType(type);
        report(state.diagnostics(), argument->getExprLoc(), Diag::Library)
            << callee << spelled(state.context, type);
        break;
    }
    case Memory::Copy:
        check_copy(state, call);
        break;
    case Memory::Set:
        check_set(state, call);
        break;
    case Memory::Compare:
        break;
    }
}

// What memcpy and __builtin_assume_aligned return is their first argument, without its qualifier.
void check_result(State &state, const CallExpr *call, const FunctionDecl *callee) {
    // The type of the call itself is another one where Clang loses its way
    // (__builtin_assume_aligned).
    if (callee->getReturnType()->isPointerType() && !is_nvl_pointer(call->getType()) &&
        is_nvl_pointer(call->getArg(0)->getType()) && !state.discarded.contains(call))
        report(state.diagnostics(), call->getExprLoc(), Diag::LibraryResult) << callee;
}

// The first argument that leads into NVM, or null.
const Expr *nvl_argument(const CallExpr *call) {
    for (const Expr *argument : call->arguments())
        if (is_nvl_pointer(argument->getType()))
            return argument;
    return nullptr;
}

void check_unnamed(State &state, const CallExpr *call, const FunctionType *type) {
    if (is_of_clauses(call))
        return;
    const auto *prototype = dyn_cast<FunctionProtoType>(type);
    unsigned named = prototype ? prototype->getNumParams() : 0;
    for (unsigned i = named; i < call->getNumArgs(); i++) {
        const Expr *argument = call->getArg(i);
        if (has_nvl_pointer(argument->getType()))
            report(state.diagnostics(), argument->getExprLoc(),
                   prototype ? Diag::Variadic : Diag::Unprototyped)
                << spelled(state.context, argument->getType());
    }
}

void check_sync(State &state, const CallExpr *call) {
    if (call->getNumArgs() == 0)
        return;
    QualType target = target_of(call->getArg(0));
    if (!target.isNull() && is_nvl(target) && target->isPointerType())
        report(state.diagnostics(), call->getExprLoc(), Diag::Atomic);
}

void discard(State &state, const Stmt *statement) {
    if (const auto *expression = dyn_cast_or_null<Expr>(statement))
        state.discarded.insert(expression->IgnoreParens());
}

} // namespace

void note_discarded(State &state, const Stmt *statement) {
    if (const auto *block = dyn_cast<CompoundStmt>(statement)) {
        for (const Stmt *child : block->body())
            discard(state, child);
    } else if (const auto *branch = dyn_cast<IfStmt>(statement)) {
        discard(state, branch->getThen());
        discard(state, branch->getElse());
    } else if (const auto *loop = dyn_cast<ForStmt>(statement)) {
        discard(state, loop->getInit());
        discard(state, loop->getInc());
        discard(state, loop->getBody());
    } else if (const auto *loop = dyn_cast<WhileStmt>(statement)) {
        discard(state, loop->getBody());
    } else if (const auto *loop = dyn_cast<DoStmt>(statement)) {
        discard(state, loop->getBody());
    } else if (const auto *label = dyn_cast<LabelStmt>(statement)) {
        discard(state, label->getSubStmt());
    } else if (const auto *label = dyn_cast<SwitchCase>(statement)) {
        discard(state, label->getSubStmt());
    } else if (const auto *cast = dyn_cast<CastExpr>(statement)) {
        if (cast->getCastKind() == CK_ToVoid)
            discard(state, cast->getSubExpr());
    } else if (const auto *comma = dyn_cast<BinaryOperator>(statement)) {
        if (comma->getOpcode() == BO_Comma)
            discard(state, comma->getLHS());
    }
}

void check_call(State &state, const CallExpr *call) {
    const FunctionDecl *callee = call->getDirectCallee();
    unsigned builtin = callee ? callee->getBuiltinID() : 0;
    if (builtin) {
        if (callee->getName().starts_with("__sync_"))
            return check_sync(state, call);
        // Clang's own functions take pointers of any kind and look at them only; what they write,
        // the passes see.
        const Builtin::Context &builtins = state.context.BuiltinInfo;
        bool is_library =
            builtins.isLibFunction(builtin) || builtins.isPredefinedLibFunction(builtin);
        const Expr *argument = nvl_argument(call);
        if (argument && is_library)
            check_library_call(state, call, callee, argument);
        if (argument)
            check_result(state, call, callee);
        if (argument || !is_library)
            return;
    }
    QualType type = call->getCallee()->getType();
    if (type->isPointerType())
        type = type->getPointeeType();
    if (const auto *function = type->getAs<FunctionType>())
        check_unnamed(state, call, function);
}

void check_va_arg(State &state, const VAArgExpr *argument) {
    if (has_nvl_pointer(argument->getType()))
        report(state.diagnostics(), argument->getExprLoc(), Diag::VaArg)
            << spelled(state.context, argument->getWrittenTypeInfo()->getType());
}

void check_atomic(State &state, const AtomicExpr *operation) {
    QualType target = operation->getPtr()->getType()->getPointeeType();
    if (target.isNull() || !is_nvl(target))
        return;
    if (const auto *atomic = target->getAs<AtomicType>())
        target = atomic->getValueType();
    if (target->isPointerType() || has_nvl_pointer(target))
        report(state.diagnostics(), operation->getExprLoc(), Diag::Atomic);
}

void check_assembly(State &state, const AsmStmt *assembly) {
    auto check = [&](const Expr *operand) {
        if (operand->isGLValue() && is_nvl(operand->getType()))
            report(state.diagnostics(), operand->getExprLoc(), Diag::Assembly);
        else if (has_nvl_pointer(operand->getType()))
            report(state.diagnostics(), operand->getExprLoc(), Diag::AssemblyPointer)
                << spelled(state.context, operand->IgnoreParenImpCasts()->getType());
    };
    for (const Expr *operand : assembly->outputs())
        check(operand);
    for (const Expr *operand : assembly->inputs())
        check(operand);
}

} // namespace nvl
