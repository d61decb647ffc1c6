// Walks over each declaration once Clang has parsed it, and lets the checks look at it.
//
// Nothing happens before the first declaration of nvl.h: a C file without NVM costs a string
// comparison per declaration, and Clang's rules and messages for it are untouched.
#include "consumer.h"

#include "allocated.h"
#include "checks.h"
#include "lasting.h"
#include "lock_changes.h"
#include "sections.h"
#include "types.h"
#include "wording.h"

#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/DiagnosticParse.h"
#include "clang/Basic/DiagnosticSema.h"
#include "clang/Lex/PreprocessorOptions.h"

namespace nvl {
namespace {

using namespace clang;

// The first declaration of nvl.h: `typedef struct __nvl_heap nvl_heap_t;`. Other programs may have
// a type of the same name, but not of the reserved one behind it.
constexpr const char header_type[] = "nvl_heap_t";

bool is_header(const Decl *declaration) {
    const auto *type = dyn_cast<TypedefDecl>(declaration);
    if (!type || type->getName() != header_type)
        return false;
    const auto *record = type->getUnderlyingType()->getAs<RecordType>();
    return record && record->getDecl()->getName() == "__nvl_heap";
}

class Visitor : public RecursiveASTVisitor<Visitor> {
  public:
    explicit Visitor(State &state) : state(state) {}

    bool VisitPointerTypeLoc(PointerTypeLoc pointer) {
        TypeLoc target = pointer.getPointeeLoc();
        // The elements of an array come by themselves.
        if (!target.getUnqualifiedLoc().IgnoreParens().getAs<ArrayTypeLoc>())
            check_target(target);
        return true;
    }
    bool VisitArrayTypeLoc(ArrayTypeLoc array) {
        check_target(array.getElementLoc());
        return true;
    }

    bool VisitVarDecl(VarDecl *variable) {
        if (auto *parameter = dyn_cast<ParmVarDecl>(variable))
            check_parameter(state, parameter);
        check_variable(state, variable);
        initialize(state, variable);
        return true;
    }
    bool VisitFunctionDecl(FunctionDecl *function) {
        check_function(state, function);
        if (function->doesThisDeclarationHaveABody())
            check_jumps(state, function->getBody());
        return true;
    }
    bool VisitFieldDecl(FieldDecl *member) {
        check_member(state, member);
        return true;
    }
    bool VisitRecordDecl(RecordDecl *record) {
        if (record->isThisDeclarationADefinition())
            check_record(state, record);
        return true;
    }

    bool VisitStmt(Stmt *statement) {
        note_discarded(state, statement);
        return true;
    }
    bool VisitExpr(Expr *expression) {
        note_weak(state, expression);
        check_weak(state, expression);
        check_volatile_object(state, expression);
        return true;
    }
    bool VisitCompoundLiteralExpr(CompoundLiteralExpr *literal) {
        check_literal(state, literal);
        return true;
    }
    bool VisitCastExpr(CastExpr *cast) {
        check_cast(state, cast);
        return true;
    }
    bool VisitBinaryOperator(BinaryOperator *binary) {
        check_comparison(state, binary);
        return true;
    }
    bool VisitCallExpr(CallExpr *call) {
        place_clause(state, call);
        check_call(state, call);
        fill_descriptor(state, call);
        return true;
    }
    bool VisitVAArgExpr(VAArgExpr *argument) {
        check_va_arg(state, argument);
        return true;
    }
    bool VisitAtomicExpr(AtomicExpr *operation) {
        check_atomic(state, operation);
        return true;
    }
    bool VisitAsmStmt(AsmStmt *assembly) {
        check_assembly(state, assembly);
        return true;
    }
    bool VisitCompoundStmt(CompoundStmt *block) {
        check_transaction(state, block);
        return true;
    }

  private:
    void check_target(TypeLoc target) {
        if (is_nvl(target.getType()))
            check_stored(state, target.getType(), target.getBeginLoc());
    }

    State &state;
};

// Whether the compilation ends with something that could be linked.
bool makes_code(const FrontendOptions &options) {
    switch (options.ProgramAction) {
    case frontend::EmitObj:
    case frontend::EmitAssembly:
    case frontend::EmitBC:
    case frontend::EmitCodeGenOnly:
        return true;
    default:
        return false;
    }
}

// Makes Clang keep files and lines in the intermediate code without -g, for checks that fail at run
// time and for what the passes say. Its code generator asks for that when it is made, and again at
// each call of OpenMP's library, which would be told its line: only the first time the answer is
// yes, so that ordinary C stays what it is.
class Lines {
  public:
    Lines(CodeGenOptions &options, const Parts &parts) : options(options) {
        // Bitcode would show it, in a list of names, also where the passes have taken them away.
        const bool may_show = parts.sections || !options.PrepareForLTO;
        are_kept =
            parts.passes && may_show && options.getDebugInfo() == llvm::codegenoptions::NoDebugInfo;
        if (are_kept)
            options.setDebugInfo(llvm::codegenoptions::LocTrackingOnly);
    }

    // The first declaration comes when the code generator has been made.
    void before_declaration() {
        if (are_kept)
            options.setDebugInfo(llvm::codegenoptions::NoDebugInfo);
    }

  private:
    CodeGenOptions &options;
    bool are_kept;
};

class Consumer : public ASTConsumer {
  public:
    Consumer(CompilerInstance &compiler, const Parts &parts)
        : diagnostics(compiler.getDiagnostics()), options(compiler.getCodeGenOpts()),
          lines(compiler.getCodeGenOpts(), parts),
          may_compile(parts.passes || !makes_code(compiler.getFrontendOpts())),
          sections(parts.sections, may_compile),
          has_precompiled_header(!compiler.getPreprocessorOpts().ImplicitPCHInclude.empty()) {}

    void Initialize(ASTContext &context) override {
        state = std::make_unique<State>(context);
        // A precompiled header hands over its declarations silently.
        if (!has_precompiled_header)
            return;
        sections.begin_behind_header(context);
        lasting.begin_behind_header(context);
        allocated.begin_behind_header(context);
        DeclarationName name(&context.Idents.get(header_type));
        for (const Decl *declaration : context.getTranslationUnitDecl()->lookup(name))
            if (begins(declaration))
                silence();
    }

    bool HandleTopLevelDecl(DeclGroupRef group) override {
        lines.before_declaration();
        for (Decl *declaration : group) {
            sections.look_at(declaration);
            lasting.read_list(declaration);
            allocated.read_options(declaration);
            if (sections.are_here()) {
                name_lock_changes(declaration);
                lasting.look_at(declaration);
                allocated.look_at(declaration);
            }
            if (!is_active && !begins(declaration))
                continue;
            // Again and again, because a user's `#pragma clang diagnostic pop` would undo it.
            silence();
            Visitor(*state).TraverseDecl(declaration);
            state->forget_expressions();
        }
        return true;
    }

    void HandleTranslationUnit(ASTContext &context) override {
        sections.end(context);
        // Code that only completes sections leaves out what no section leads to.
        if (sections.are_here())
            options.FunctionSections = true;
        if (is_active)
            check_incomplete_again(*state);
    }

  private:
    bool begins(const Decl *declaration) {
        if (!is_header(declaration))
            return false;
        is_active = true;
        sections.refuse_nvl(declaration);
        reword_messages(state->context);
        if (!may_compile)
            report(diagnostics, declaration->getLocation(), Diag::NoPasses);
        return true;
    }

    // Takes from Clang what NVL-C decides by itself: attributes.cpp and declarations.cpp.
    void silence() {
        for (unsigned message :
             {diag::err_field_with_address_space, diag::err_arg_with_address_space,
              diag::err_as_qualified_auto_decl, diag::warn_attribute_not_on_decl})
            diagnostics.setSeverity(message, diag::Severity::Ignored, SourceLocation());
    }

    DiagnosticsEngine &diagnostics;
    // The backend reads them behind the last declaration.
    CodeGenOptions &options;
    Lines lines;
    bool may_compile;
    Sections sections;
    Lasting lasting;
    Allocated allocated;
    bool has_precompiled_header;
    bool is_active = false;
    std::unique_ptr<State> state;
};

} // namespace

std::unique_ptr<ASTConsumer> Action::CreateASTConsumer(CompilerInstance &compiler,
                                                       llvm::StringRef) {
    return std::make_unique<Consumer>(compiler, parts);
}

bool Action::ParseArgs(const CompilerInstance &, const std::vector<std::string> &arguments) {
    for (const std::string &argument : arguments) {
        parts.passes &= argument != "no-passes";
        parts.sections |= argument == "ido";
    }
    return true;
}

} // namespace nvl
