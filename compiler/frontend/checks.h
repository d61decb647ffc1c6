// The checks and changes of the syntax tree, one file for each subject. Visitor (consumer.cpp)
// calls them for every declaration of a file that includes nvl.h.
#pragma once

#include "diagnostics.h"

#include "clang/AST/ASTContext.h"
#include "clang/AST/Expr.h"
#include "clang/AST/TypeLoc.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace nvl {

// What the checks of one translation unit share.
struct State {
    explicit State(clang::ASTContext &context) : context(context) {}

    clang::ASTContext &context;
    clang::DiagnosticsEngine &diagnostics() const { return context.getDiagnostics(); }

    // Structs whose members were found (un)fit for NVM, so that each is reported once (stored.cpp).
    llvm::DenseSet<const clang::RecordDecl *> looked_at;
    // Structs that NVM pointers lead to and that are not complete yet, with the place of the
    // pointer.
    llvm::MapVector<const clang::TagDecl *, clang::SourceLocation> incomplete;
    // Expressions that may name a weak pointer without reading or writing it (weak.cpp).
    llvm::DenseSet<const clang::Expr *> may_be_weak;
    // Operands of comparisons that have been reported (casts.cpp).
    llvm::DenseSet<const clang::Expr *> reported;
    // Calls of library functions whose value nobody uses (calls.cpp).
    llvm::DenseSet<const clang::Expr *> discarded;

    // A declaration has been looked at with all its expressions.
    void forget_expressions() {
        may_be_weak.clear();
        reported.clear();
        discarded.clear();
    }
};

// stored.cpp: what an object in NVM may consist of.
void check_stored(State &state, clang::QualType type, clang::SourceLocation location);
void check_incomplete_again(State &state);

// declarations.cpp: where an object may be declared.
void check_variable(State &state, const clang::VarDecl *variable);
void check_parameter(State &state, const clang::ParmVarDecl *parameter);
void check_function(State &state, const clang::FunctionDecl *function);
void check_member(State &state, const clang::FieldDecl *member);
void check_record(State &state, const clang::RecordDecl *record);
void check_literal(State &state, const clang::CompoundLiteralExpr *literal);
void check_volatile_object(State &state, const clang::Expr *object);

// casts.cpp: conversions, comparisons.
void check_cast(State &state, const clang::CastExpr *cast);
void check_comparison(State &state, const clang::BinaryOperator *comparison);

// calls.cpp: arguments of functions that do not know about NVM, and inline assembly.
void note_discarded(State &state, const clang::Stmt *statement);
void check_call(State &state, const clang::CallExpr *call);
void check_va_arg(State &state, const clang::VAArgExpr *argument);
void check_atomic(State &state, const clang::AtomicExpr *operation);
void check_assembly(State &state, const clang::AsmStmt *assembly);

// weak.cpp: a weak pointer is named to be read or written, nothing else.
void note_weak(State &state, const clang::Expr *expression);
void check_weak(State &state, const clang::Expr *expression);

// jumps.cpp, initialization.cpp, transactions.cpp: bodies of functions.
void check_jumps(State &state, clang::Stmt *body);
void initialize(State &state, clang::VarDecl *variable);
void check_transaction(State &state, const clang::CompoundStmt *block);

// clauses.cpp: puts what the clauses of a pragma name into the calls that the pragma has become.
void place_clause(State &state, clang::CallExpr *call);
// Whether a call only stands there for what clauses name: it has arguments of all types.
bool is_of_clauses(const clang::CallExpr *call);

// descriptor.cpp: puts the descriptor of a type into a call that asks for it.
void fill_descriptor(State &state, clang::CallExpr *call);

} // namespace nvl
