// The messages of the front end. diagnostics.def is the list; docs/tutorials/nvl-c.md has the
// table.
#pragma once

#include "clang/Basic/Diagnostic.h"

namespace nvl {

enum class Diag {
#define DURUMCC_DIAGNOSTIC(language, name, id, level, text, cure) name,
#include "diagnostics.def"
#undef DURUMCC_DIAGNOSTIC
};

// Begins a message. Its arguments and fixes follow by <<, as in Clang itself.
clang::DiagnosticBuilder report(clang::DiagnosticsEngine &engine, clang::SourceLocation location,
                                Diag diag);

// A note to the message before it. `text` may have %0 and so on.
template <unsigned N>
clang::DiagnosticBuilder note(clang::DiagnosticsEngine &engine, clang::SourceLocation location,
                              const char (&text)[N]) {
    return engine.Report(location, engine.getCustomDiagID(clang::DiagnosticsEngine::Note, text));
}

} // namespace nvl
