// The attributes behind the qualifiers `nvl` and `nvl_wp`.
//
// Clang knows no objects of another address space that are members or parameters, and marks their
// declarations invalid. An attribute is looked at after this and before the declaration is used, so
// what NVL-C allows is mended here:
//
//   T *nvl m;           a member: its own qualifier is taken off, since the object that it is in
//                       decides; a mark stays (types.h)
//   T *nvl_wp m;        the same, with the annotation that CodeGen puts on every access
//   f(nvl T a[n][m])    a parameter that was an array: its type is a pointer, and valid
//
// Clang's own messages are switched off by the consumer. Whatever is not mended here stays invalid,
// and declarations.cpp says why.
#include "types.h"

#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/Sema/ParsedAttr.h"
#include "clang/Sema/Sema.h"

namespace {

using namespace clang;

QualType without_space(ASTContext &context, QualType type) {
    Qualifiers qualifiers;
    QualType unqualified = context.getUnqualifiedArrayType(type, qualifiers);
    qualifiers.removeAddressSpace();
    return context.getQualifiedType(unqualified, qualifiers);
}

// A struct is whole again if no other member of it is broken.
void mend_record(FieldDecl *field) {
    RecordDecl *record = field->getParent();
    for (const FieldDecl *other : record->fields())
        if (other != field && other->isInvalidDecl())
            return;
    record->setInvalidDecl(false);
}

void mend_member(Sema &sema, FieldDecl *field) {
    ASTContext &context = sema.getASTContext();
    bool is_weak = nvl::is_nvl_wp(field->getType());
    if (!is_weak && !nvl::is_nvl(field->getType()))
        return;
    QualType type = without_space(context, field->getType());
    QualType element = context.getBaseElementType(type);
    // These are errors of their own, which Clang has reported.
    if (type->isVariablyModifiedType() || type->isFunctionType() || element->isIncompleteType() ||
        !nvl::is_sound(element))
        return;
    // Not mended, so that declarations.cpp finds it.
    if (is_weak && !nvl::is_nvl_pointer(element))
        return;
    field->setType(type);
    if (is_weak)
        field->addAttr(AnnotateAttr::CreateImplicit(context, nvl::weak_annotation, nullptr, 0));
    else
        field->addAttr(BTFDeclTagAttr::CreateImplicit(context, nvl::stored_tag));
    field->setInvalidDecl(false);
    mend_record(field);
}

void mend_parameter(ParmVarDecl *parameter) {
    const TypeSourceInfo *written = parameter->getTypeSourceInfo();
    if (written && written->getType()->isArrayType() && nvl::is_nvl(written->getType()) &&
        nvl::is_nvl_pointer(parameter->getType()))
        parameter->setInvalidDecl(false);
}

struct Qualifier : ParsedAttrInfo {
    explicit Qualifier(ArrayRef<Spelling> spellings) { Spellings = spellings; }

    bool diagAppertainsToDecl(Sema &, const ParsedAttr &, const Decl *) const override {
        return true;
    }

    AttrHandling handleDeclAttribute(Sema &sema, Decl *declaration,
                                     const ParsedAttr &) const override {
        if (auto *field = dyn_cast<FieldDecl>(declaration))
            mend_member(sema, field);
        else if (auto *parameter = dyn_cast<ParmVarDecl>(declaration))
            mend_parameter(parameter);
        return AttributeApplied;
    }
};

constexpr ParsedAttrInfo::Spelling strong_names[] = {{ParsedAttr::AS_GNU, "__nvl_q__"},
                                                     {ParsedAttr::AS_GNU, "nvl_q"}};
constexpr ParsedAttrInfo::Spelling weak_names[] = {{ParsedAttr::AS_GNU, "__nvl_wp_q__"},
                                                   {ParsedAttr::AS_GNU, "nvl_wp_q"}};

struct Strong : Qualifier {
    Strong() : Qualifier(strong_names) {}
};
struct Weak : Qualifier {
    Weak() : Qualifier(weak_names) {}
};

ParsedAttrInfoRegistry::Add<Strong> strong("nvl_q", "the object is stored in NVM");
ParsedAttrInfoRegistry::Add<Weak> weak("nvl_wp_q", "the object is a weak pointer in NVM");

} // namespace
