// Stands between Clang and whoever gets its messages: the terminal, a file, or the comparison with
// comments of a test (-verify). They have the words of nvl-c.md:
//
//   'nvl int *' (aka '__attribute__((address_space(1))) int *')      'nvl int *'
//
// and stand at a qualifier, and not at its macro in nvl.h. Errors in a clause of a pragma name it.
// All else of a message stays.
#include "wording.h"

#include "pragma.h"
#include "types.h"

#include "clang/Lex/Lexer.h"

namespace nvl {
namespace {

using namespace clang;

// What stands behind "aka" says nothing new where it is the same by now.
void remove_repeated(std::string &text) {
    constexpr StringRef aka = "' (aka '";
    for (size_t at = 0; (at = text.find(aka.str(), at)) != std::string::npos;) {
        size_t begin = text.rfind('\'', at - 1);
        size_t other = at + aka.size();
        size_t end = text.find("')", other);
        if (begin != std::string::npos && end != std::string::npos &&
            text.substr(begin + 1, at - begin - 1) == text.substr(other, end - other))
            text.erase(at + 1, end + 1 - at);
        else
            at = other;
    }
}

// Clang knows the attributes of a qualifier by their own names.
void name_qualifier(std::string &text, StringRef qualifier) {
    for (StringRef attribute :
         {"'address_space' attribute", "'__nvl_q__' attribute", "'__nvl_wp_q__' attribute"})
        if (size_t at = text.find(attribute.str()); at != std::string::npos)
            text.replace(at, attribute.size(), "'" + qualifier.str() + "'");
}

// What is wrong with an expression in a pragma, Clang tells as of any other one.
void name_clause(std::string &text, SourceLocation place) {
    StringRef clause = clause_at(place);
    if (!clause.empty() && !StringRef(text).contains("the clause '"))
        text += ", in the clause '" + clause.str() + "'";
}

class Reworded : public DiagnosticConsumer {
  public:
    explicit Reworded(ASTContext &context)
        : engine(context.getDiagnostics()), language(context.getLangOpts()),
          next(engine.getClient()), owner(engine.takeClient()) {
        take_counts();
    }

    void BeginSourceFile(const LangOptions &language, const Preprocessor *preprocessor) override {
        next->BeginSourceFile(language, preprocessor);
        take_counts();
    }
    void EndSourceFile() override {
        next->EndSourceFile();
        take_counts();
    }
    void finish() override {
        next->finish();
        take_counts();
    }
    void clear() override {
        next->clear();
        take_counts();
    }
    bool IncludeInDiagnosticCounts() const override { return next->IncludeInDiagnosticCounts(); }

    void HandleDiagnostic(DiagnosticsEngine::Level level, const Diagnostic &message) override {
        SmallString<256> text;
        message.FormatDiagnostic(text);
        std::string words = with_qualifiers(text.str().str());
        SourceLocation place = message.getLocation();
        if (level >= DiagnosticsEngine::Error)
            name_clause(words, place);
        StringRef qualifier = leave_qualifier(message, place);
        if (!qualifier.empty()) {
            name_qualifier(words, qualifier);
            report_at(place, level, message, words);
        } else if (words == text) {
            next->HandleDiagnostic(level, message);
        } else {
            remove_repeated(words);
            next->HandleDiagnostic(level, Diagnostic(message.getDiags(), words));
        }
        take_counts();
    }

  private:
    // Where `place` is in the macro of a qualifier, it becomes where that stands.
    StringRef leave_qualifier(const Diagnostic &message, SourceLocation &place) const {
        StringRef qualifier;
        while (place.isMacroID()) {
            const SourceManager &sources = message.getSourceManager();
            StringRef macro = Lexer::getImmediateMacroName(place, sources, language);
            if (macro != "nvl" && macro != "nvl_wp")
                break;
            qualifier = macro;
            place = sources.getImmediateMacroCallerLoc(place);
        }
        return qualifier;
    }

    // Once more from the begin: the place of a message is the engine's. A qualifier is two
    // attributes, of which Clang may say the same.
    void report_at(SourceLocation place, DiagnosticsEngine::Level level, const Diagnostic &message,
                   StringRef words) {
        if (place == last_place && words == last_words)
            return;
        last_place = place;
        last_words = words.str();
        StoredDiagnostic copy(level, message.getID(), words,
                              FullSourceLoc(place, message.getSourceManager()), message.getRanges(),
                              message.getFixItHints());
        engine.Clear();
        engine.Report(copy);
    }

    // Clang asks its consumer how many errors there were. The next one may not count all that it
    // gets, and adds its own.
    void take_counts() {
        NumErrors = next->getNumErrors();
        NumWarnings = next->getNumWarnings();
    }

    DiagnosticsEngine &engine;
    const LangOptions &language;
    DiagnosticConsumer *next;
    std::unique_ptr<DiagnosticConsumer> owner;
    SourceLocation last_place;
    std::string last_words;
};

} // namespace

void reword_messages(ASTContext &context) {
    context.getDiagnostics().setClient(new Reworded(context), true);
}

} // namespace nvl
