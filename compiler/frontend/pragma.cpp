// #pragma nvl atomic heap(h) clobber(a[i:n])
// statement
//
// becomes, before the parser sees it,
//
//   {
//       struct __nvl_tx __nvl_tx0 __attribute__((__cleanup__(__nvl_tx_end)));
//       __nvl_tx_begin(&__nvl_tx0, __nvl_backup, 1, __extension__(nvl_heap_t *[]){(h)});
//       __nvl_tx_range(&__nvl_tx0, __nvl_clobber, &(a)[i], (long long)(n), sizeof((a)[i]));
//       statement
//   }
//
// The cleanup makes every way out of the statement a commit, and makes Clang refuse a jump into it.
// Tokens of the program keep their places, so that errors in a clause point into the pragma. Those
// that are put in have a spelling, because the preprocessor may have to print them (-E,
// -save-temps).
#include "pragma.h"

#include "diagnostics.h"

#include "clang/Lex/Pragma.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace nvl {
namespace {

using namespace clang;

class Writer {
  public:
    Writer(Preprocessor &preprocessor, SourceLocation location)
        : preprocessor(preprocessor), location(location) {}

    // Tokens of ours, separated by blanks.
    void text(StringRef words) {
        SmallVector<StringRef, 16> parts;
        words.split(parts, ' ', -1, /*KeepEmpty=*/false);
        for (StringRef part : parts)
            tokens.push_back(token(part));
    }

    void append(ArrayRef<Token> more) { tokens.append(more.begin(), more.end()); }

    void inject() {
        auto copy = std::make_unique<Token[]>(tokens.size());
        std::copy(tokens.begin(), tokens.end(), copy.get());
        preprocessor.EnterTokenStream(std::move(copy), tokens.size(),
                                      /*DisableMacroExpansion=*/true, /*IsReinject=*/true);
    }

  private:
    Token token(StringRef spelling) {
        Token token;
        token.startToken();
        token.setKind(punctuator(spelling));
        if (llvm::isDigit(spelling[0]))
            token.setKind(tok::numeric_constant);
        preprocessor.CreateString(spelling, token, location, location);
        if (token.is(tok::unknown)) {
            IdentifierInfo *name = preprocessor.getIdentifierInfo(spelling);
            token.setIdentifierInfo(name);
            token.setKind(name->getTokenID());
        }
        token.setFlag(Token::LeadingSpace);
        if (spelling == "{" || spelling == "}")
            token.setFlag(Token::StartOfLine);
        return token;
    }

    static tok::TokenKind punctuator(StringRef spelling) {
        return llvm::StringSwitch<tok::TokenKind>(spelling)
            .Case("{", tok::l_brace)
            .Case("}", tok::r_brace)
            .Case("(", tok::l_paren)
            .Case(")", tok::r_paren)
            .Case("[", tok::l_square)
            .Case("]", tok::r_square)
            .Case(",", tok::comma)
            .Case(";", tok::semi)
            .Case("&", tok::amp)
            .Case("*", tok::star)
            .Default(tok::unknown);
    }

    Preprocessor &preprocessor;
    SourceLocation location;
    Tokens tokens;
};

void write_begin(Writer &writer, StringRef name, const Clauses &clauses) {
    writer.text("struct __nvl_tx");
    writer.text(name);
    writer.text("__attribute__ ( ( __cleanup__ ( __nvl_tx_end ) ) ) ; __nvl_tx_begin ( &");
    writer.text(name);
    writer.text(",");
    writer.text(clauses.default_kind);
    writer.text(",");
    writer.text(llvm::utostr(clauses.heaps.size()));
    writer.text(", __extension__ ( nvl_heap_t * [ ] ) {");
    for (const Tokens &heap : clauses.heaps) {
        writer.text("(");
        writer.append(heap);
        writer.text(") ,");
    }
    writer.text("} ) ;");
}

void write_range(Writer &writer, StringRef name, const Segment &segment) {
    auto object = [&] {
        writer.text("(");
        writer.append(segment.item.object);
        writer.text(")");
        if (segment.item.first.empty())
            return;
        writer.text("[");
        writer.append(segment.item.first);
        writer.text("]");
    };
    writer.text("__nvl_tx_range ( &");
    writer.text(name);
    writer.text(",");
    writer.text(segment.kind);
    writer.text(", &");
    object();
    writer.text(", ( long long ) (");
    if (segment.item.count.empty())
        writer.text("1");
    else
        writer.append(segment.item.count);
    writer.text(") , sizeof (");
    object();
    writer.text(") ) ;");
}

class NvlPragma : public PragmaHandler {
  public:
    NvlPragma() : PragmaHandler("nvl") {}

    void HandlePragma(Preprocessor &preprocessor, PragmaIntroducer introducer,
                      Token &first) override {
        DiagnosticsEngine &diagnostics = preprocessor.getDiagnostics();
        Token word;
        preprocessor.LexUnexpandedToken(word);
        const IdentifierInfo *name = word.getIdentifierInfo();
        if (!name || name->getName() != "atomic") {
            report(diagnostics, word.is(tok::eod) ? first.getLocation() : word.getLocation(),
                   Diag::PragmaUnknown);
            while (word.isNot(tok::eod))
                preprocessor.LexUnexpandedToken(word);
            return;
        }
        Tokens line;
        Token token;
        for (preprocessor.Lex(token); token.isNot(tok::eod); preprocessor.Lex(token))
            line.push_back(token);
        // The preprocessor alone may have no macros of the header: `cc -E` of what it has printed.
        if (!preprocessor.isMacroDefined("nvl")) {
            report(diagnostics, first.getLocation(), Diag::PragmaHeader);
            return;
        }
        std::optional<Clauses> clauses = read_clauses(preprocessor, first.getLocation(), line);
        rewrite(preprocessor, introducer.Loc, clauses);
    }

  private:
    void rewrite(Preprocessor &preprocessor, SourceLocation location,
                 const std::optional<Clauses> &clauses) {
        // Inner pragmas are handled while the statement is read: they take the numbers after this.
        std::string name = "__nvl_tx" + llvm::utostr(transactions++);
        Statement statement;
        bool is_whole = read_statement(preprocessor, location, statement);
        Writer writer(preprocessor, location);
        // Without a transaction the statement is still looked at, for errors of its own.
        bool is_transaction = is_whole && clauses;
        if (is_transaction) {
            writer.text("{");
            write_begin(writer, name, *clauses);
            for (const Segment &segment : clauses->segments)
                write_range(writer, name, segment);
        }
        writer.append(statement.tokens);
        if (is_transaction)
            writer.text("}");
        writer.append(statement.behind);
        writer.inject();
    }

    unsigned transactions = 0;
};

PragmaHandlerRegistry::Add<NvlPragma> pragma("nvl", "transactions of NVL-C");

} // namespace
} // namespace nvl
