// Takes one statement from the preprocessor, by the few rules that tell where a statement of C
// ends.
//
// Whether a name is a type is not known here. A declaration that begins with a keyword is refused
// at once; transactions.cpp finds the others.
#include "pragma.h"

#include "diagnostics.h"

namespace nvl {

using namespace clang;

bool begins_declaration(const Token &token) {
    switch (token.getKind()) {
    case tok::kw_auto:
    case tok::kw_char:
    case tok::kw_const:
    case tok::kw_double:
    case tok::kw_enum:
    case tok::kw_extern:
    case tok::kw_float:
    case tok::kw_inline:
    case tok::kw_int:
    case tok::kw_long:
    case tok::kw_register:
    case tok::kw_restrict:
    case tok::kw_short:
    case tok::kw_signed:
    case tok::kw_static:
    case tok::kw_struct:
    case tok::kw_typedef:
    case tok::kw_typeof:
    case tok::kw_union:
    case tok::kw_unsigned:
    case tok::kw_void:
    case tok::kw_volatile:
    case tok::kw__Alignas:
    case tok::kw__Atomic:
    case tok::kw__Bool:
    case tok::kw__Complex:
    case tok::kw__Noreturn:
    case tok::kw__Static_assert:
    case tok::kw__Thread_local:
    case tok::kw___auto_type:
    case tok::kw_bool:
        return true;
    default:
        return false;
    }
}

namespace {

bool opens(const Token &token) {
    return token.isOneOf(tok::l_paren, tok::l_square, tok::l_brace);
}

bool closes(const Token &token) {
    return token.isOneOf(tok::r_paren, tok::r_square, tok::r_brace);
}

class Reader {
  public:
    Reader(Preprocessor &preprocessor, SourceLocation pragma, Statement &statement)
        : preprocessor(preprocessor), pragma(pragma), statement(statement) {}

    bool read() {
        bool is_read = read_statement();
        if (has_next)
            statement.behind.push_back(next);
        return is_read;
    }

  private:
    const Token &peek() {
        if (!has_next)
            preprocessor.Lex(next);
        has_next = true;
        return next;
    }

    void take() {
        statement.tokens.push_back(peek());
        has_next = false;
    }

    bool fail(Diag diag) {
        if (!has_failed)
            report(preprocessor.getDiagnostics(), pragma, diag);
        has_failed = true;
        return false;
    }

    bool read_statement() {
        while (true) {
            const Token &token = peek();
            if (token.isAnnotation()) {
                take_annotation();
                continue;
            }
            switch (token.getKind()) {
            case tok::eof:
            case tok::r_brace:
            case tok::kw_else:
                return fail(Diag::PragmaStatement);
            case tok::l_brace:
                return read_balanced();
            case tok::kw_if:
                take();
                return read_condition() && read_statement() && read_else();
            case tok::kw_switch:
                has_switch = true;
                [[fallthrough]];
            case tok::kw_for:
            case tok::kw_while:
                take();
                return read_condition() && read_statement();
            case tok::kw_do:
                take();
                return read_statement() && read_to(tok::semi);
            case tok::kw_case:
            case tok::kw_default:
                if (!has_switch)
                    return fail(Diag::PragmaCase);
                if (!read_to(tok::colon))
                    return false;
                continue;
            case tok::l_square:
                if (!read_balanced())
                    return false;
                continue;
            case tok::kw___attribute:
                take();
                if (!read_condition())
                    return false;
                // `__attribute__((fallthrough));` is a statement, `nvl struct s *p` is none.
                if (peek().isNot(tok::semi) && !is_statement_keyword(peek()))
                    return fail(Diag::PragmaDeclaration);
                continue;
            default:
                break;
            }
            if (begins_declaration(token))
                return fail(Diag::PragmaDeclaration);
            bool may_be_label = token.is(tok::identifier);
            if (!may_be_label)
                return read_to(tok::semi);
            take();
            if (peek().isNot(tok::colon))
                return read_to(tok::semi);
            take();
        }
    }

    static bool is_statement_keyword(const Token &token) {
        return token.isOneOf(tok::kw_if, tok::kw_for, tok::kw_while, tok::kw_do, tok::kw_switch,
                             tok::kw_return, tok::l_brace, tok::kw_goto, tok::kw___attribute);
    }

    // `#pragma clang loop` and OpenMP's directives arrive as tokens of their own kind.
    void take_annotation() {
        bool is_openmp = peek().is(tok::annot_pragma_openmp);
        take();
        while (is_openmp && peek().isNot(tok::eof)) {
            bool is_end = peek().is(tok::annot_pragma_openmp_end);
            take();
            if (is_end)
                return;
        }
    }

    bool read_condition() {
        if (peek().isNot(tok::l_paren))
            return true; // Clang says what is missing.
        return read_balanced();
    }

    bool read_else() {
        if (peek().isNot(tok::kw_else))
            return true;
        take();
        return read_statement();
    }

    bool read_balanced() {
        int depth = 0;
        do {
            if (peek().is(tok::eof))
                return fail(Diag::PragmaStatement);
            depth += opens(peek()) ? 1 : closes(peek()) ? -1 : 0;
            take();
        } while (depth > 0);
        return true;
    }

    // `a ? b : c` has a colon that does not end a label.
    bool read_to(tok::TokenKind end) {
        int depth = 0;
        int questions = 0;
        while (true) {
            const Token &token = peek();
            if (token.is(tok::eof) || (depth == 0 && token.is(tok::r_brace)))
                return fail(Diag::PragmaStatement);
            depth += opens(token) ? 1 : closes(token) ? -1 : 0;
            questions += token.is(tok::question) ? 1 : 0;
            bool is_end = depth == 0 && token.is(end);
            if (end == tok::colon && is_end && questions > 0) {
                questions--;
                is_end = false;
            }
            take();
            if (is_end)
                return true;
        }
    }

    Preprocessor &preprocessor;
    SourceLocation pragma;
    Statement &statement;
    Token next;
    bool has_next = false;
    // The switch of a label is in the statement.
    bool has_switch = false;
    bool has_failed = false;
};

} // namespace

bool read_statement(Preprocessor &preprocessor, SourceLocation pragma, Statement &statement) {
    return Reader(preprocessor, pragma, statement).read();
}

} // namespace nvl
