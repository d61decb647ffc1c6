#include "diagnostics.h"

namespace nvl {
namespace {

struct Message {
    clang::DiagnosticsEngine::Level level;
    const char *text;
};

constexpr auto error = clang::DiagnosticsEngine::Error;

// The id stands behind the text, where Clang has the option of a warning.
constexpr Message messages[] = {
#define DURUMCC_DIAGNOSTIC(language, name, id, level, text, cure) {level, text " [" id "]"},
#include "diagnostics.def"
#undef DURUMCC_DIAGNOSTIC
};

} // namespace

clang::DiagnosticBuilder report(clang::DiagnosticsEngine &engine, clang::SourceLocation location,
                                Diag diag) {
    const Message &message = messages[static_cast<unsigned>(diag)];
    return engine.Report(
        location, engine.getDiagnosticIDs()->getCustomDiagID(
                      static_cast<clang::DiagnosticIDs::Level>(message.level), message.text));
}

} // namespace nvl
