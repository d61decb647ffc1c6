//   durum_locks(+2) void lock_both(struct pair *);
//
// has the symbol `lock_both.durum_locks.2`, in the file that defines it and in those that call it.
// So a caller and a definition that do not agree do not link.
#include "lock_changes.h"

#include "diagnostics.h"

#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Mangle.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "llvm/Support/raw_ostream.h"

namespace nvl {
namespace {

using namespace clang;

constexpr const char annotation[] = "durum_locks ";
// Nobody counts beyond.
constexpr int change_max = 63;

std::string symbol_of(const FunctionDecl &function) {
    ASTContext &context = function.getASTContext();
    std::unique_ptr<MangleContext> names(context.createMangleContext());
    if (!names->shouldMangleDeclName(&function))
        return function.getNameAsString();
    std::string name;
    llvm::raw_string_ostream out(name);
    names->mangleName(GlobalDecl(&function), out);
    return name;
}

class Visitor : public RecursiveASTVisitor<Visitor> {
  public:
    bool TraverseDecl(Decl *declaration) {
        const auto *scope = dyn_cast_or_null<DeclContext>(declaration);
        if (scope && scope->isDependentContext())
            return true;
        return RecursiveASTVisitor::TraverseDecl(declaration);
    }

    bool VisitFunctionDecl(FunctionDecl *function) {
        for (const auto *attribute : function->specific_attrs<AnnotateAttr>()) {
            StringRef text = attribute->getAnnotation();
            if (!text.consume_front(annotation) || function->hasAttr<AsmLabelAttr>())
                continue;
            text.consume_front("+");
            int change;
            if (text.getAsInteger(10, change) || std::abs(change) > change_max ||
                isa<CXXConstructorDecl, CXXDestructorDecl>(function))
                report(function->getASTContext().getDiagnostics(), function->getLocation(),
                       Diag::IdoLockChange)
                    << function;
            else if (change != 0)
                name(*function, change);
            break;
        }
        return true;
    }

  private:
    static void name(FunctionDecl &function, int change) {
        const std::string label = symbol_of(function) + ".durum_locks." + std::to_string(change);
        function.addAttr(AsmLabelAttr::CreateImplicit(function.getASTContext(), label,
                                                      /*IsLiteralLabel=*/true));
    }
};

} // namespace

void name_lock_changes(Decl *declaration) {
    Visitor().TraverseDecl(declaration);
}

} // namespace nvl
