// The clauses of `#pragma nvl atomic`: where each begins and ends, and its items. Their types are
// looked at in clauses.cpp.
#include "pragma.h"

#include "diagnostics.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSwitch.h"

namespace nvl {
namespace {

using namespace clang;

constexpr const char *clause_names[] = {"heap", "backup", "clobber", "readonly", "default"};
constexpr const char *kind_names[] = {"backup", "clobber", "readonly"};

// The bracket that closes what the token opens, or `unknown`.
tok::TokenKind closing(const Token &token) {
    switch (token.getKind()) {
    case tok::l_paren:
        return tok::r_paren;
    case tok::l_square:
        return tok::r_square;
    case tok::l_brace:
        return tok::r_brace;
    default:
        return tok::unknown;
    }
}

bool closes(const Token &token) {
    return token.isOneOf(tok::r_paren, tok::r_square, tok::r_brace);
}

// The clauses of the tokens that Clang has got from them. A process compiles one file.
llvm::DenseMap<SourceLocation, StringRef> clauses_of_tokens;

int depth_of(const Token &token) {
    return closing(token) != tok::unknown ? 1 : closes(token) ? -1 : 0;
}

// The constant in nvl.h, or null.
const char *kind_of(StringRef clause) {
    return llvm::StringSwitch<const char *>(clause)
        .Case("backup", "__nvl_backup")
        .Case("clobber", "__nvl_clobber")
        .Case("readonly", "__nvl_readonly")
        .Default(nullptr);
}

// Puts the name that was meant in the place of the word.
FixItHint correction(const Token &token, ArrayRef<const char *> names) {
    const IdentifierInfo *word = token.getIdentifierInfo();
    if (word && token.getLocation().isFileID())
        for (StringRef name : names)
            if (word->getName().edit_distance_insensitive(name) <= name.size() / 3)
                return FixItHint::CreateReplacement(token.getLocation(), name);
    return {};
}

class Reader {
  public:
    Reader(Preprocessor &preprocessor, SourceLocation atomic, ArrayRef<Token> line,
           SourceLocation end)
        : diagnostics(preprocessor.getDiagnostics()), atomic(atomic), line(line), end(end) {}

    std::optional<Clauses> read() {
        while (!line.empty())
            if (!read_clause())
                return std::nullopt;
        if (heap_name.isInvalid() && is_good)
            fail(atomic, Diag::PragmaHeap);
        return is_good ? std::optional<Clauses>(clauses) : std::nullopt;
    }

  private:
    DiagnosticBuilder fail(SourceLocation location, Diag diag) {
        is_good = false;
        return report(diagnostics, location, diag);
    }

    // `what` is missing in front of the next token.
    void expected(SourceLocation location, const std::string &what) {
        fail(location, Diag::PragmaSyntax) << what;
    }

    SourceLocation here() const { return line.empty() ? end : line.front().getLocation(); }

    Token take() {
        Token token = line.front();
        line = line.drop_front();
        return token;
    }

    std::string of_clause() const { return " of the clause '" + clause.str() + "'"; }

    // False where the rest of the line cannot be understood.
    bool read_clause() {
        // As in OpenMP, a comma may stand between clauses.
        if (line.front().is(tok::comma) && has_clause)
            take();
        if (line.empty() || !line.front().getIdentifierInfo()) {
            expected(here(), has_clause ? "the name of a clause, or the end of the line"
                                        : "the name of a clause");
            return false;
        }
        Token name = take();
        has_clause = true;
        clause = name.getIdentifierInfo()->getName();
        bool is_known = llvm::is_contained(clause_names, clause);
        if (!is_known)
            fail(name.getLocation(), Diag::PragmaClause)
                << clause << correction(name, clause_names);
        if (line.empty() || line.front().isNot(tok::l_paren)) {
            // Behind a name that no clause has, anything may be meant.
            if (is_known)
                expected(here(), "'(' behind the name" + of_clause());
            return false;
        }
        SmallVector<Item, 4> items;
        if (!read_items(items))
            return false;
        if (is_known)
            keep(name, items);
        return true;
    }

    // From the parenthesis that opens the clause to the one that closes it.
    bool read_items(SmallVectorImpl<Item> &items) {
        SmallVector<Token, 4> open{take()};
        items.emplace_back();
        items.back().begin = open.front().getLocation();
        while (!line.empty()) {
            Token token = take();
            clauses_of_tokens[token.getLocation()] = clause;
            bool is_outside = open.size() == 1;
            if (is_outside && token.isOneOf(tok::comma, tok::r_paren)) {
                if (!end_item(items.back(), token))
                    return false;
                if (token.is(tok::r_paren))
                    return true;
                items.emplace_back();
                items.back().begin = token.getLocation();
                continue;
            }
            if (closes(token)) {
                if (token.isNot(closing(open.back())))
                    return missing(open.back(), token.getLocation());
                open.pop_back();
            } else if (closing(token) != tok::unknown) {
                open.push_back(token);
            } else if (is_outside && token.is(tok::semi)) {
                return missing(open.back(), token.getLocation());
            }
            if (is_outside && !may_follow(items.back().object, token)) {
                expected(token.getLocation(), "',' or ')' behind an item" + of_clause());
                return false;
            }
            items.back().object.push_back(token);
        }
        return missing(open.back(), end);
    }

    // Two names or numbers are no expression.
    static bool may_follow(ArrayRef<Token> before, const Token &token) {
        auto is_operand = [](const Token &token) {
            return token.isOneOf(tok::identifier, tok::numeric_constant);
        };
        return before.empty() || !is_operand(before.back()) || !is_operand(token);
    }

    bool end_item(Item &item, const Token &separator) {
        item.end = separator.getLocation();
        if (!item.object.empty())
            return true;
        expected(item.end, "an item" + of_clause());
        return false;
    }

    bool missing(const Token &open, SourceLocation location) {
        const char *bracket = tok::getPunctuatorSpelling(closing(open));
        expected(location, "'" + std::string(bracket) + "'" + of_clause());
        note(diagnostics, open.getLocation(), "to match this one");
        return false;
    }

    void keep(const Token &name, ArrayRef<Item> items) {
        if (clause == "heap") {
            if (is_first(name, heap_name))
                for (const Item &item : items)
                    keep_heap(item);
        } else if (clause == "default") {
            if (is_first(name, default_name))
                keep_default(items);
        } else {
            for (const Item &item : items)
                keep_segment(item);
        }
    }

    // Some clauses stand once; `first` is where.
    bool is_first(const Token &name, SourceLocation &first) {
        if (first.isValid()) {
            fail(name.getLocation(), Diag::PragmaTwice) << clause;
            note(diagnostics, first, "the first one is here");
            return false;
        }
        first = name.getLocation();
        return true;
    }

    void keep_default(ArrayRef<Item> items) {
        const Token &token = items.front().object.front();
        const IdentifierInfo *word = token.getIdentifierInfo();
        const char *kind = word ? kind_of(word->getName()) : nullptr;
        if (!kind)
            fail(token.getLocation(), Diag::PragmaDefault) << correction(token, kind_names);
        else if (items.front().object.size() > 1)
            fail(items.front().object[1].getLocation(), Diag::PragmaDefault);
        else if (items.size() > 1)
            fail(items[1].object.front().getLocation(), Diag::PragmaDefault);
        else
            clauses.default_kind = kind;
    }

    void keep_heap(Item item) {
        if (!split(item))
            return;
        if (item.colon.isValid())
            expected(item.colon, "']'" + of_clause());
        else
            clauses.heaps.push_back(item);
    }

    void keep_segment(const Item &item) {
        Segment segment{kind_of(clause), item};
        if (!split(segment.item))
            return;
        clauses.segments.push_back(segment);
    }

    // The colon of a section stands in the last pair of brackets and belongs to no `?`.
    bool split(Item &item) {
        const Tokens tokens = item.object;
        const Token *open = nullptr;
        const Token *colon = nullptr;
        int depth = 0;
        int outer_questions = 0;
        int inner_questions = 0;
        for (const Token &token : tokens) {
            if (depth == 0 && colon)
                return refuse_section(token);
            if (depth == 0 && token.is(tok::l_square)) {
                open = &token;
                inner_questions = 0;
            }
            depth += depth_of(token);
            if (depth == 0 && !colon)
                open = nullptr;
            if (depth != (open ? 1 : 0))
                continue;
            int &questions = open ? inner_questions : outer_questions;
            if (token.is(tok::question))
                questions++;
            if (token.isNot(tok::colon) || questions-- > 0)
                continue;
            if (!open || colon)
                return refuse_section(token);
            colon = &token;
            questions = 0;
        }
        if (!colon)
            return true;
        const Token *close = &tokens.back();
        item.object.assign(tokens.begin(), open);
        item.first.assign(open + 1, colon);
        item.count.assign(colon + 1, close);
        item.open = open->getLocation();
        item.colon = colon->getLocation();
        item.close = close->getLocation();
        if (item.object.empty())
            return refuse_section(*open);
        if (item.first.empty())
            return refuse_section(*colon);
        if (item.count.empty())
            return refuse_section(*close);
        return true;
    }

    bool refuse_section(const Token &token) {
        fail(token.getLocation(), Diag::PragmaSection) << clause;
        return false;
    }

    DiagnosticsEngine &diagnostics;
    SourceLocation atomic;
    ArrayRef<Token> line;
    SourceLocation end;
    Clauses clauses;
    // The clause that is being read.
    StringRef clause;
    bool has_clause = false;
    SourceLocation heap_name;
    SourceLocation default_name;
    bool is_good = true;
};

} // namespace

StringRef clause_at(SourceLocation place) {
    return clauses_of_tokens.lookup(place);
}

std::optional<Clauses> read_clauses(Preprocessor &preprocessor, SourceLocation atomic,
                                    ArrayRef<Token> line, SourceLocation end) {
    return Reader(preprocessor, atomic, line, end).read();
}

} // namespace nvl
