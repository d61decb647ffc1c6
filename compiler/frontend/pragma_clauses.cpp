// The clauses of `#pragma nvl atomic`.
#include "pragma.h"

#include "diagnostics.h"

#include "llvm/ADT/StringSwitch.h"

namespace nvl {
namespace {

using namespace clang;

constexpr const char *clause_names[] = {"heap", "backup", "clobber", "readonly", "default"};

int depth_of(const Token &token) {
    switch (token.getKind()) {
    case tok::l_paren:
    case tok::l_square:
    case tok::l_brace:
        return 1;
    case tok::r_paren:
    case tok::r_square:
    case tok::r_brace:
        return -1;
    default:
        return 0;
    }
}

// The constant in nvl.h, or null.
const char *kind_of(StringRef clause) {
    return llvm::StringSwitch<const char *>(clause)
        .Case("backup", "__nvl_backup")
        .Case("clobber", "__nvl_clobber")
        .Case("readonly", "__nvl_readonly")
        .Default(nullptr);
}

class Reader {
  public:
    Reader(Preprocessor &preprocessor, SourceLocation pragma, ArrayRef<Token> line)
        : diagnostics(preprocessor.getDiagnostics()), pragma(pragma), line(line) {}

    std::optional<Clauses> read() {
        while (!line.empty())
            if (!read_clause())
                return std::nullopt;
        if (clauses.heaps.empty() && is_good)
            fail(pragma, Diag::PragmaHeap);
        return is_good ? std::optional<Clauses>(clauses) : std::nullopt;
    }

  private:
    DiagnosticBuilder fail(SourceLocation location, Diag diag) {
        is_good = false;
        return report(diagnostics, location, diag);
    }

    SourceLocation here() const { return line.empty() ? last : line.front().getLocation(); }

    Token take() {
        Token token = line.front();
        last = token.getEndLoc();
        line = line.drop_front();
        return token;
    }

    // False where the rest of the line cannot be understood.
    bool read_clause() {
        // As in OpenMP, a comma may stand between clauses.
        if (line.front().is(tok::comma) && last.isValid())
            take();
        if (line.empty() || !line.front().getIdentifierInfo()) {
            fail(here(), Diag::PragmaSyntax) << "the name of a clause";
            return false;
        }
        Token name = take();
        StringRef clause = name.getIdentifierInfo()->getName();
        if (!is_clause(clause))
            report_unknown(name, clause);
        if (line.empty() || line.front().isNot(tok::l_paren)) {
            fail(here(), Diag::PragmaSyntax) << "'(' behind the name of the clause";
            return false;
        }
        take();
        SmallVector<Tokens, 4> items;
        if (!read_items(items))
            return false;
        if (is_clause(clause))
            keep(name, clause, items);
        return true;
    }

    static bool is_clause(StringRef name) { return llvm::is_contained(clause_names, name); }

    void report_unknown(const Token &token, StringRef name) {
        auto builder = fail(token.getLocation(), Diag::PragmaClause);
        builder << name;
        for (const char *known : clause_names)
            if (name.edit_distance(known) <= 2 && token.getLocation().isFileID()) {
                builder << FixItHint::CreateReplacement(token.getLocation(), known);
                return;
            }
    }

    // Up to the parenthesis that closes the clause.
    bool read_items(SmallVectorImpl<Tokens> &items) {
        items.emplace_back();
        int depth = 1;
        while (!line.empty()) {
            Token token = take();
            depth += depth_of(token);
            if (depth == 0)
                return check_items(items, token.getLocation());
            if (depth == 1 && token.is(tok::comma))
                items.emplace_back();
            else
                items.back().push_back(token);
        }
        fail(here(), Diag::PragmaSyntax) << "')'";
        return false;
    }

    bool check_items(ArrayRef<Tokens> items, SourceLocation end) {
        for (const Tokens &item : items)
            if (item.empty()) {
                fail(end, Diag::PragmaSyntax) << "an item of the clause";
                return false;
            }
        return true;
    }

    void keep(const Token &name, StringRef clause, ArrayRef<Tokens> items) {
        if (clause == "heap") {
            if (!clauses.heaps.empty())
                fail(name.getLocation(), Diag::PragmaTwice) << clause;
            clauses.heaps.append(items.begin(), items.end());
        } else if (clause == "default") {
            keep_default(name, items);
        } else {
            for (const Tokens &item : items)
                keep_segment(kind_of(clause), item);
        }
    }

    void keep_default(const Token &name, ArrayRef<Tokens> items) {
        const Token &token = items.front().front();
        const IdentifierInfo *word = token.getIdentifierInfo();
        const char *kind = word ? kind_of(word->getName()) : nullptr;
        if (!kind || items.size() > 1 || items.front().size() > 1) {
            fail(token.getLocation(), Diag::PragmaDefault);
            return;
        }
        if (has_default)
            fail(name.getLocation(), Diag::PragmaTwice) << "default";
        has_default = true;
        clauses.default_kind = kind;
    }

    // The colon of a section stands in the last pair of brackets and belongs to no `?`.
    void keep_segment(const char *kind, const Tokens &tokens) {
        Segment segment{kind, {}};
        const Token *open = nullptr;
        const Token *colon = nullptr;
        int depth = 0;
        int questions = 0;
        for (const Token &token : tokens) {
            if (token.is(tok::l_square) && depth == 0) {
                if (colon) {
                    fail(token.getLocation(), Diag::PragmaSection);
                    return;
                }
                open = &token;
                questions = 0;
            }
            depth += depth_of(token);
            if (depth == 1 && open && token.is(tok::question))
                questions++;
            if (depth == 1 && open && token.is(tok::colon) && questions-- == 0) {
                colon = &token;
                questions = 0;
            }
            if (depth == 0 && !colon && token.is(tok::r_square))
                open = nullptr;
        }
        if (!colon) {
            segment.item.object = tokens;
        } else {
            const Token *close = &tokens.back();
            segment.item.object.append(tokens.begin(), open);
            segment.item.first.append(open + 1, colon);
            segment.item.count.append(colon + 1, close);
            if (close->isNot(tok::r_square) || segment.item.object.empty() ||
                segment.item.first.empty() || segment.item.count.empty()) {
                fail(colon->getLocation(), Diag::PragmaSection);
                return;
            }
        }
        clauses.segments.push_back(segment);
    }

    DiagnosticsEngine &diagnostics;
    SourceLocation pragma;
    SourceLocation last;
    ArrayRef<Token> line;
    Clauses clauses;
    bool has_default = false;
    bool is_good = true;
};

} // namespace

std::optional<Clauses> read_clauses(Preprocessor &preprocessor, SourceLocation pragma,
                                    ArrayRef<Token> line) {
    return Reader(preprocessor, pragma, line).read();
}

} // namespace nvl
