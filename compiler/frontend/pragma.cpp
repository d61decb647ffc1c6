// #pragma nvl atomic heap(h) clobber(a[i:n])
// statement
//
// becomes, before the parser sees it,
//
//   {
//       struct __nvl_tx __nvl_tx0 __attribute__((__cleanup__(__nvl_tx_end)));
//       __nvl_tx_begin(&__nvl_tx0, __nvl_backup, __nvl_values(1, h), (nvl_heap_t *[]){0});
//       __nvl_tx_range(&__nvl_tx0, __nvl_clobber, 0, ((void)(a)[i], __nvl_values(1, n)), 0);
//       statement
//   }
//
// The cleanup makes every way out of the statement a commit, and makes Clang refuse a jump into it.
// Tokens of the program keep their places and stand here once, where Clang takes expressions of any
// type: so a mistake is one error and points into the pragma. clauses.cpp looks at their types and
// puts them where the functions expect them.
//
// The statement cannot be read while the pragma is handled: the lexer of the file is in the middle
// of its work then, and would be deleted under its own feet at the file's end. So the pragma is
// replaced by the first lines, and their last semicolon is waited for: when the preprocessor hands
// it to the parser, nothing is under way, and the statement and its closing brace are put behind
// it.
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

    // _Pragma("text")
    void operator_pragma(const std::string &text) {
        Token name = token("_Pragma");
        name.setFlag(Token::StartOfLine);
        tokens.push_back(name);
        tokens.push_back(token("("));
        tokens.push_back(token("\"" + Lexer::Stringify(text) + "\"", tok::string_literal));
        tokens.push_back(token(")"));
    }

    void append(ArrayRef<Token> more) { tokens.append(more.begin(), more.end()); }

    // A token of ours that counts as standing at a place of the program, for what Clang says of it.
    void place(tok::TokenKind kind, SourceLocation place) {
        Token token;
        token.startToken();
        token.setKind(kind);
        token.setLength(1);
        token.setLocation(place);
        tokens.push_back(token);
    }

    // A name of ours at the pragma, where Clang tells of jumps past it.
    void place(StringRef name) {
        place(tok::identifier, location);
        tokens.back().setIdentifierInfo(preprocessor.getIdentifierInfo(name));
    }

    const Token &last() const { return tokens.back(); }

    // The preprocessor tells its watcher only of tokens that count as new.
    void inject(bool are_watched = false) {
        auto copy = std::make_unique<Token[]>(tokens.size());
        std::copy(tokens.begin(), tokens.end(), copy.get());
        preprocessor.EnterTokenStream(std::move(copy), tokens.size(),
                                      /*DisableMacroExpansion=*/true, !are_watched);
    }

  private:
    static tok::TokenKind kind_of(StringRef spelling) {
        return llvm::isDigit(spelling[0]) ? tok::numeric_constant : punctuator(spelling);
    }

    Token token(StringRef spelling) { return token(spelling, kind_of(spelling)); }

    Token token(StringRef spelling, tok::TokenKind kind) {
        Token token;
        token.startToken();
        token.setKind(kind);
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
    writer.place(name);
    writer.text("__attribute__ ( ( __cleanup__ ( __nvl_tx_end ) ) ) ; __nvl_tx_begin ( &");
    writer.text(name);
    writer.text(",");
    writer.text(clauses.default_kind);
    writer.text(",");
    writer.text("__nvl_values (");
    writer.text(llvm::utostr(clauses.heaps.size()));
    for (const Item &heap : clauses.heaps) {
        writer.place(tok::comma, heap.begin);
        writer.append(heap.object);
    }
    writer.place(tok::r_paren, clauses.heaps.back().end);
    writer.text(", __extension__ ( nvl_heap_t * [ ] ) {");
    for (size_t i = 0; i < clauses.heaps.size(); i++)
        writer.text("0 ,");
    writer.text("} ) ;");
}

void write_range(Writer &writer, StringRef name, const Segment &segment) {
    const Item &item = segment.item;
    bool is_section = !item.count.empty();
    writer.text("__nvl_tx_range ( &");
    writer.text(name);
    writer.text(",");
    writer.text(segment.kind);
    // The parentheses are for `*p[1:2]`.
    writer.text(", 0 , ( ( void )");
    writer.place(tok::l_paren, item.object.front().getLocation());
    writer.append(item.object);
    writer.place(tok::r_paren, is_section ? item.open : item.end);
    if (is_section) {
        writer.place(tok::l_square, item.open);
        writer.append(item.first);
        writer.place(tok::r_square, item.colon);
        writer.text(", __nvl_values ( 1");
        writer.place(tok::comma, item.colon);
        writer.append(item.count);
        writer.place(tok::r_paren, item.close);
    } else {
        writer.place(tok::comma, item.end);
        writer.text("1");
    }
    writer.text(") , 0 ) ;");
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
            SourceLocation place = word.is(tok::eod) ? first.getLocation() : word.getLocation();
            FixItHint fix;
            if (name && name->getName().edit_distance("atomic") <= 2 && place.isFileID())
                fix = FixItHint::CreateReplacement(place, "atomic");
            report(diagnostics, place, Diag::PragmaUnknown) << fix;
            while (word.isNot(tok::eod))
                preprocessor.LexUnexpandedToken(word);
            return;
        }
        Tokens line;
        Token token;
        for (preprocessor.Lex(token); token.isNot(tok::eod); preprocessor.Lex(token))
            line.push_back(token);
        if (preprocessor.isPreprocessedOutput()) {
            print(preprocessor, introducer.Loc, line);
            return;
        }
        if (!has_header(preprocessor)) {
            const SourceManager &sources = preprocessor.getSourceManager();
            SourceLocation start = sources.getLocForStartOfFile(sources.getMainFileID());
            report(diagnostics, first.getLocation(), Diag::PragmaHeader)
                << FixItHint::CreateInsertion(start, "#include <nvl.h>\n");
            return;
        }
        std::optional<Clauses> clauses =
            read_clauses(preprocessor, word.getLocation(), line, token.getLocation());
        if (!clauses)
            return;
        if (introducer.Kind == PIK_HashPragma && declares(preprocessor, token.getLocation()))
            report(diagnostics, first.getLocation(), Diag::PragmaDeclaration);
        else
            begin(preprocessor, introducer.Loc, *clauses);
    }

  private:
    // What has been preprocessed has the declarations of the header, but not its macros.
    static bool has_header(Preprocessor &preprocessor) {
        return preprocessor.isMacroDefined("nvl") ||
               preprocessor.getIdentifierInfo("__nvl_tx_begin")->getFETokenInfo();
    }

    // With -E the pragma stays, with its macros expanded, which a line that begins with # would not
    // be. Pragmas behind it are printed when they are met, so the statement must not be read here.
    static void print(Preprocessor &preprocessor, SourceLocation location, ArrayRef<Token> line) {
        std::string text = "nvl atomic";
        for (const Token &token : line)
            text += " " + preprocessor.getSpelling(token);
        Writer writer(preprocessor, location);
        writer.operator_pragma(text);
        writer.inject();
    }

    // Whether a declaration's first word stands behind the pragma's line. Outside of functions
    // there is nothing else, and there the begin of a block would confuse the parser.
    static bool declares(Preprocessor &preprocessor, SourceLocation line_end) {
        const SourceManager &sources = preprocessor.getSourceManager();
        auto [file, offset] = sources.getDecomposedLoc(sources.getFileLoc(line_end));
        StringRef text = sources.getBufferData(file);
        Lexer lexer(sources.getLocForStartOfFile(file), preprocessor.getLangOpts(), text.begin(),
                    text.begin() + offset, text.end());
        Token next;
        lexer.LexFromRawLexer(next);
        if (next.isNot(tok::raw_identifier))
            return false;
        const IdentifierInfo *name = preprocessor.LookUpIdentifierInfo(next);
        return begins_declaration(next) || name->isStr("nvl") || name->isStr("nvl_wp");
    }

    void begin(Preprocessor &preprocessor, SourceLocation location, const Clauses &clauses) {
        std::string name = "__nvl_tx" + llvm::utostr(transactions++);
        Writer writer(preprocessor, location);
        writer.text("{");
        write_begin(writer, name, clauses);
        for (const Segment &segment : clauses.segments)
            write_range(writer, name, segment);
        waiting.push_back({writer.last().getLocation(), location});
        writer.inject(/*are_watched=*/true);
        if (is_watching)
            return;
        is_watching = true;
        preprocessor.setTokenWatcher([this, &preprocessor](const Token &token) {
            if (!waiting.empty() && token.getLocation() == waiting.back().semicolon)
                finish(preprocessor);
        });
    }

    // Pragmas in the statement begin and finish while it is read.
    void finish(Preprocessor &preprocessor) {
        SourceLocation location = waiting.pop_back_val().pragma;
        Statement statement;
        bool is_whole = read_statement(preprocessor, location, statement);
        Writer writer(preprocessor, location);
        // What is no statement comes behind the block, so that its errors are its own.
        if (!is_whole)
            writer.text("}");
        writer.append(statement.tokens);
        if (is_whole)
            writer.text("}");
        writer.append(statement.behind);
        writer.inject();
    }

    struct Waiting {
        SourceLocation semicolon;
        SourceLocation pragma;
    };
    SmallVector<Waiting, 2> waiting;
    bool is_watching = false;
    unsigned transactions = 0;
};

PragmaHandlerRegistry::Add<NvlPragma> pragma("nvl", "transactions of NVL-C");

} // namespace
} // namespace nvl
