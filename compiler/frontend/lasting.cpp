//   static long count;      with the list "count", or "server.c:count"
//
//   static __attribute__((annotate("durum_durable"), annotate("durum_type i64\n"))) long count;
//
// The passes move what has the first of them, and tell the runtime of the second.
#include "lasting.h"

#include "diagnostics.h"
#include "layout.h"

#include "clang/AST/Attr.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/Support/Path.h"

namespace nvl {

using namespace clang;

namespace {

constexpr const char list[] = "__durum_ido_variables";
constexpr const char durable[] = "durum_durable";
constexpr const char type_of[] = "durum_type ";

bool has_annotation(const VarDecl &variable, StringRef text) {
    return llvm::any_of(variable.specific_attrs<AnnotateAttr>(), [&](const AnnotateAttr *one) {
        return one->getAnnotation().starts_with(text);
    });
}

void add_annotation(VarDecl &variable, const std::string &text) {
    variable.addAttr(AnnotateAttr::CreateImplicit(variable.getASTContext(), text, nullptr, 0));
}

// As the list has it: `count`, `visit.count` of a function's.
std::string name_of(const VarDecl &variable) {
    const auto *function = dyn_cast<FunctionDecl>(variable.getDeclContext());
    return function ? function->getQualifiedNameAsString() + "." + variable.getNameAsString()
                    : variable.getQualifiedNameAsString();
}

// Also of a source that was preprocessed.
StringRef file_of(const VarDecl &variable) {
    const SourceManager &sources = variable.getASTContext().getSourceManager();
    const PresumedLoc place = sources.getPresumedLoc(variable.getLocation());
    return place.isValid() ? llvm::sys::path::filename(place.getFilename()) : "";
}

} // namespace

class LastingVisitor : public RecursiveASTVisitor<LastingVisitor> {
  public:
    explicit LastingVisitor(const Lasting &lasting) : lasting(lasting) {}

    bool VisitVarDecl(VarDecl *variable) {
        if (variable->hasGlobalStorage())
            lasting.annotate(*variable);
        return true;
    }

  private:
    const Lasting &lasting;
};

void Lasting::read_list(const Decl *declaration) {
    const auto *variable = dyn_cast<VarDecl>(declaration);
    if (!variable || !variable->getIdentifier() || variable->getName() != list ||
        !variable->hasInit())
        return;
    const auto *text = dyn_cast<StringLiteral>(variable->getInit()->IgnoreParenImpCasts());
    SmallVector<StringRef, 16> found;
    if (text)
        text->getString().split(found, ';', -1, /*KeepEmpty=*/false);
    for (StringRef name : found)
        names.insert(name);
}

void Lasting::begin_behind_header(ASTContext &context) {
    for (const Decl *declaration :
         context.getTranslationUnitDecl()->lookup(DeclarationName(&context.Idents.get(list))))
        read_list(declaration);
}

void Lasting::look_at(Decl *declaration) {
    LastingVisitor(*this).TraverseDecl(declaration);
}

bool Lasting::is_listed(const VarDecl &variable) const {
    if (names.empty() || !variable.getIdentifier())
        return false;
    const std::string name = name_of(variable);
    return names.contains(name) || names.contains((file_of(variable) + ":" + name).str());
}

void Lasting::annotate(VarDecl &variable) const {
    if (is_listed(variable) && !has_annotation(variable, durable))
        add_annotation(variable, durable);
    if (!has_annotation(variable, durable))
        return;
    ASTContext &context = variable.getASTContext();
    DiagnosticsEngine &diagnostics = context.getDiagnostics();
    QualType type = variable.getType();
    if (variable.getTLSKind() != VarDecl::TLS_None)
        report(diagnostics, variable.getLocation(), Diag::IdoDurableThread) << &variable;
    const bool is_made_by_code = context.getLangOpts().CPlusPlus && !type->isDependentType() &&
                                 ((variable.hasInit() && !variable.getInit()->isValueDependent() &&
                                   !variable.hasConstantInitialization()) ||
                                  variable.needsDestruction(context));
    if (is_made_by_code)
        report(diagnostics, variable.getLocation(), Diag::IdoDurableCode) << &variable;
    if (has_annotation(variable, type_of) || type->isIncompleteType())
        return;
    if (std::optional<std::string> text = layout_text(context, type, Hidden::Refused))
        add_annotation(variable, type_of + *text);
}

} // namespace nvl
