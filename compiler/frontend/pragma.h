// The parts of `#pragma nvl atomic`: what its line says, and the statement behind it.
#pragma once

#include "clang/Lex/Preprocessor.h"
#include "clang/Lex/Token.h"

#include <optional>

namespace nvl {

using Tokens = llvm::SmallVector<clang::Token, 16>;

// `a[first:count]`, or any lvalue: then `first` and `count` are empty and `object` is all of it.
struct Item {
    Tokens object;
    Tokens first;
    Tokens count;
    // Where it begins and ends: the parentheses and commas around it.
    clang::SourceLocation begin;
    clang::SourceLocation end;
    // Of a section.
    clang::SourceLocation open;
    clang::SourceLocation colon;
    clang::SourceLocation close;
};

// What is done with a segment: the names of the clauses, and of the constants in nvl.h.
struct Segment {
    const char *kind;
    Item item;
};

struct Clauses {
    llvm::SmallVector<Item, 1> heaps;
    llvm::SmallVector<Segment, 4> segments;
    const char *default_kind = "__nvl_backup";
};

// pragma_clauses.cpp: `line` is what stands behind `atomic`, `end` where it ends. Nothing if an
// error was reported.
std::optional<Clauses> read_clauses(clang::Preprocessor &preprocessor, clang::SourceLocation atomic,
                                    llvm::ArrayRef<clang::Token> line, clang::SourceLocation end);

// The clause that a token at the place belongs to, or nothing.
llvm::StringRef clause_at(clang::SourceLocation place);

// pragma_statement.cpp: whether a keyword stands at the beginning of declarations only.
bool begins_declaration(const clang::Token &token);

// Takes the next statement from the preprocessor. What was looked at behind
// it is in `behind`. False if an error was reported; then the tokens hold what was read.
struct Statement {
    Tokens tokens;
    Tokens behind;
};
bool read_statement(clang::Preprocessor &preprocessor, clang::SourceLocation pragma,
                    Statement &statement);

} // namespace nvl
