// The driver includes the mark in front of each source. Input that has been preprocessed has it, or
// has it not, and so has a precompiled header: code that is asked to be durable is never plain.
#include "sections.h"

#include "diagnostics.h"

#include "clang/Basic/SourceManager.h"

namespace nvl {
namespace {

using namespace clang;

constexpr const char mark[] = "__durum_ido_needs_passes";

SourceLocation start_of(const ASTContext &context) {
    const SourceManager &sources = context.getSourceManager();
    return sources.getLocForStartOfFile(sources.getMainFileID());
}

} // namespace

void Sections::begin_behind_header(ASTContext &context) {
    DeclarationName name(&context.Idents.get(mark));
    is_marked = !context.getTranslationUnitDecl()->lookup(name).empty();
    if (is_marked != is_asked)
        report(context.getDiagnostics(), start_of(context), Diag::IdoHeader);
}

void Sections::look_at(const Decl *declaration) {
    const auto *variable = dyn_cast<VarDecl>(declaration);
    is_marked |= variable && variable->getIdentifier() && variable->getName() == mark;
}

void Sections::refuse_nvl(const Decl *declaration) {
    if (is_asked || is_marked)
        report(declaration->getASTContext().getDiagnostics(), declaration->getLocation(),
               Diag::IdoNvl);
}

void Sections::end(ASTContext &context) {
    DiagnosticsEngine &diagnostics = context.getDiagnostics();
    if (is_asked && !is_marked)
        report(diagnostics, start_of(context), Diag::IdoPreprocessed);
    if (is_marked && !may_compile)
        report(diagnostics, start_of(context), Diag::IdoNoPasses);
}

} // namespace nvl
