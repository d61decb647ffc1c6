//   struct node *node = nv_malloc(sizeof *node);
//
// becomes a call of a function of this name, which no program can have:
//
//   __durum_ido_typed nv_malloc
//   struct "node"(16,8){0:"value":i64;8:"next":*0;}
//
// and one that says nothing of a type has a reason in its place, behind `__durum_ido_untyped`. The
// passes make calls of the runtime of both (docs/reference/ido-ir.md).
#include "allocated.h"

#include "allocated_type.h"

#include "clang/AST/Attr.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSwitch.h"

namespace nvl {

using namespace clang;

namespace {

constexpr const char options[] = "__durum_ido_options";

// The bits of options.
enum {
#define DURUMCC_OPTION(language, member, option, bit, text) language##_##member = bit,
#include "../options.def"
};

// The call that gives what the expression is, or null.
const CallExpr *call_in(const Expr *expression) {
    return dyn_cast<CallExpr>(expression->IgnoreParens());
}

} // namespace

class AllocatedVisitor : public RecursiveASTVisitor<AllocatedVisitor> {
  public:
    AllocatedVisitor(Allocated &allocated, ASTContext &context)
        : allocated(allocated), context(context) {}

    // What templates say is said of each of their instances. And Clang itself may have to run what
    // is constexpr.
    bool TraverseDecl(Decl *declaration) {
        const auto *scope = dyn_cast_or_null<DeclContext>(declaration);
        const auto *function = dyn_cast_or_null<FunctionDecl>(declaration);
        if ((scope && scope->isDependentContext()) || (function && function->isConstexpr()))
            return true;
        return RecursiveASTVisitor::TraverseDecl(declaration);
    }

    // From the outside in: what is nearest to the call, and no `void *`, is what it becomes.
    bool VisitCastExpr(CastExpr *cast) {
        QualType type = cast->getType();
        if (type->isPointerType() && !type->isVoidPointerType())
            note(cast->getSubExpr(), type->getPointeeType());
        return true;
    }

    bool VisitCallExpr(CallExpr *call) {
        FunctionDecl *callee = call->getDirectCallee();
        if (!callee || call->isTypeDependent() || !allocated.allocates(*callee))
            return true;
        SmallVector<const Expr *, 2> sizes;
        for (const Expr *argument : call->arguments())
            if (argument->getType()->isIntegerType())
                sizes.push_back(argument);
        FunctionDecl *named = name(*callee, type_of_call(context, sizes, results.lookup(call)));
        QualType type = named->getType();
        Expr *reference = DeclRefExpr::Create(context, NestedNameSpecifierLoc(), SourceLocation(),
                                              named, false, call->getExprLoc(), type, VK_LValue);
        call->setCallee(ImplicitCastExpr::Create(context, context.getPointerType(type),
                                                 CK_FunctionToPointerDecay, reference, nullptr,
                                                 VK_PRValue, FPOptionsOverride()));
        return true;
    }

    bool VisitCXXNewExpr(CXXNewExpr *made) {
        FunctionDecl *callee = made->getOperatorNew();
        if (callee && !made->isTypeDependent() && allocated.allocates(*callee))
            made->setOperatorNew(name(*callee, type_of_new(context, *made)));
        return true;
    }

  private:
    void note(const Expr *expression, QualType target) {
        expression = expression->IgnoreParens();
        if (const auto *either = dyn_cast<ConditionalOperator>(expression)) {
            note(either->getTrueExpr(), target);
            note(either->getFalseExpr(), target);
        } else if (const auto *cast = dyn_cast<CastExpr>(expression)) {
            if (cast->getType()->isVoidPointerType())
                note(cast->getSubExpr(), target);
        } else if (const CallExpr *call = call_in(expression)) {
            results[call] = target;
        }
    }

    FunctionDecl *name(FunctionDecl &callee, const AllocatedType &type) {
        std::string function = callee.getOverloadedOperator() == OO_New ? "_Znwm" : "_Znam";
        const bool is_nothrow = callee.getNumParams() > 1;
        if (callee.getOverloadedOperator() == OO_None)
            function = callee.getBuiltinID() == Builtin::BI__builtin_operator_new
                           ? "_Znwm"
                           : callee.getNameAsString();
        else if (is_nothrow)
            function += "RKSt9nothrow_t";
        const char *begin = type.text ? "__durum_ido_typed " : "__durum_ido_untyped ";
        return allocated.named(callee, begin + function + "\n" + type.text.value_or(type.reason));
    }

    Allocated &allocated;
    ASTContext &context;
    // Where calls lead whose result becomes a pointer of another type.
    llvm::DenseMap<const CallExpr *, QualType> results;
};

void Allocated::read_options(const Decl *declaration) {
    const auto *variable = dyn_cast<VarDecl>(declaration);
    if (!variable || !variable->getIdentifier() || variable->getName() != options ||
        !variable->hasInit())
        return;
    const std::optional<llvm::APSInt> value =
        variable->getInit()->getIntegerConstantExpr(variable->getASTContext());
    takes_malloc = value && (value->getZExtValue() & ido_durable_malloc);
}

void Allocated::begin_behind_header(ASTContext &context) {
    for (const Decl *declaration :
         context.getTranslationUnitDecl()->lookup(DeclarationName(&context.Idents.get(options))))
        read_options(declaration);
}

void Allocated::look_at(Decl *declaration) {
    AllocatedVisitor(*this, declaration->getASTContext()).TraverseDecl(declaration);
}

bool Allocated::allocates(const FunctionDecl &function) const {
    if (function.isReplaceableGlobalAllocationFunction() ||
        function.getBuiltinID() == Builtin::BI__builtin_operator_new) {
        const OverloadedOperatorKind which = function.getOverloadedOperator();
        // The second parameter may be an alignment, which the passes refuse.
        const bool is_plain =
            function.getNumParams() < 2 || function.getParamDecl(1)->getType()->isReferenceType();
        return takes_malloc && is_plain && !function.hasBody() && which != OO_Delete &&
               which != OO_Array_Delete;
    }
    if (!function.getIdentifier() || !function.isExternC() || function.hasBody())
        return false;
    return llvm::StringSwitch<bool>(function.getName())
        .Cases("nv_malloc", "nv_calloc", "nv_realloc", "nv_root", true)
        .Cases("malloc", "calloc", "realloc", takes_malloc)
        .Default(false);
}

FunctionDecl *Allocated::named(FunctionDecl &function, const std::string &name) {
    FunctionDecl *&known = functions[name];
    if (known)
        return known;
    ASTContext &context = function.getASTContext();
    // That of the name is the program's, of one name a type only: none of Clang's own functions.
    known = FunctionDecl::Create(context, context.getTranslationUnitDecl(), SourceLocation(),
                                 SourceLocation(), &context.Idents.get("__durum_ido_typed"),
                                 function.getType(), nullptr, SC_Extern);
    SmallVector<ParmVarDecl *, 2> parameters;
    for (const ParmVarDecl *parameter : function.parameters())
        parameters.push_back(ParmVarDecl::Create(context, known, SourceLocation(), SourceLocation(),
                                                 nullptr, parameter->getType(), nullptr, SC_None,
                                                 nullptr));
    known->setParams(parameters);
    known->setImplicit();
    for (const Attr *attribute : function.attrs())
        if (!isa<BuiltinAttr, AsmLabelAttr>(attribute))
            known->addAttr(attribute->clone(context));
    known->addAttr(AsmLabelAttr::CreateImplicit(context, name, /*IsLiteralLabel=*/true));
    return known;
}

} // namespace nvl
