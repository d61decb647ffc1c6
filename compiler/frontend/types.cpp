#include "types.h"

#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace nvl {
namespace {

bool in_space(clang::QualType type, unsigned space) {
    return !type.isNull() && !type->isDependentType() &&
           type.getAddressSpace() == clang::getLangASFromTargetAS(space);
}

// The first member of a struct, or of one that it has in it, that matches. A struct with an error
// may contain itself.
const clang::FieldDecl *find_member(clang::QualType type,
                                    llvm::function_ref<bool(const clang::FieldDecl *)> matches) {
    llvm::SmallPtrSet<const clang::RecordDecl *, 8> seen;
    llvm::SmallVector<const clang::RecordDecl *, 8> open{record_of(type)};
    while (!open.empty()) {
        const clang::RecordDecl *record = open.pop_back_val();
        if (!record || !seen.insert(record).second)
            continue;
        for (const clang::FieldDecl *field : record->fields()) {
            if (matches(field))
                return field;
            open.push_back(record_of(field->getType()));
        }
    }
    return nullptr;
}

// Without the macros and attributes that the qualifiers are written by, and without the
// `__typeof__` of macros in nvl.h; with typedefs.
clang::QualType without_spelling(const clang::ASTContext &context, clang::QualType type) {
    clang::SplitQualType split = type.split();
    clang::QualType inner(split.Ty, 0);
    while (llvm::isa<clang::MacroQualifiedType, clang::AttributedType, clang::TypeOfType,
                     clang::TypeOfExprType>(inner.getTypePtr())) {
        clang::SplitQualType next = inner.getSingleStepDesugaredType(context).split();
        split.Quals.addConsistentQualifiers(next.Quals);
        inner = clang::QualType(next.Ty, 0);
    }
    if (const auto *pointer = llvm::dyn_cast<clang::PointerType>(inner.getTypePtr()))
        inner = context.getPointerType(without_spelling(context, pointer->getPointeeType()));
    else if (const auto *array = llvm::dyn_cast<clang::ConstantArrayType>(inner.getTypePtr()))
        inner = context.getConstantArrayType(
            without_spelling(context, array->getElementType()), array->getSize(),
            array->getSizeExpr(), array->getSizeModifier(), array->getIndexTypeCVRQualifiers());
    return context.getQualifiedType(inner, split.Quals);
}

void replace_all(std::string &text, llvm::StringRef from, llvm::StringRef to) {
    for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to.str());
}

} // namespace

std::string spelled(const clang::ASTContext &context, clang::QualType type) {
    std::string text = without_spelling(context, type)
                           .getUnqualifiedType()
                           .getAsString(context.getPrintingPolicy());
    return "'" + with_qualifiers(text) + "'";
}

std::string with_qualifiers(std::string text) {
    replace_all(text, "__attribute__((address_space(1)))", "nvl");
    replace_all(text, "__attribute__((address_space(2)))", "nvl_wp");
    return text;
}

bool is_nvl(clang::QualType type) {
    return in_space(type, nvl_space);
}

bool is_nvl_wp(clang::QualType type) {
    return in_space(type, nvl_wp_space);
}

bool is_nvl_pointer(clang::QualType type) {
    return !type.isNull() && type->isPointerType() && is_nvl(type->getPointeeType());
}

clang::QualType element(clang::QualType type) {
    while (const clang::ArrayType *array = type->getAsArrayTypeUnsafe())
        type = array->getElementType();
    return type;
}

const clang::RecordDecl *record_of(clang::QualType type) {
    const auto *record = element(type)->getAs<clang::RecordType>();
    return record ? record->getDecl()->getDefinition() : nullptr;
}

bool is_sound(clang::QualType type) {
    if (!element(type)->isRecordType())
        return true;
    const clang::RecordDecl *record = record_of(type);
    if (!record || record->isInvalidDecl())
        return false;
    return !find_member(type, [](const clang::FieldDecl *field) {
        clang::QualType own = element(field->getType());
        const clang::RecordDecl *inner = record_of(own);
        return field->isInvalidDecl() || own->isIncompleteType() ||
               (inner && inner->isInvalidDecl());
    });
}

bool has_nvl_pointer(clang::QualType type) {
    auto is_pointer = [](clang::QualType type) {
        type = element(type);
        const auto *atomic = type->getAs<clang::AtomicType>();
        return is_nvl_pointer(atomic ? atomic->getValueType() : type);
    };
    return is_pointer(type) || find_member(type, [&](const clang::FieldDecl *field) {
               return is_pointer(field->getType());
           });
}

bool is_weak(const clang::FieldDecl *field) {
    for (const auto *attribute : field->specific_attrs<clang::AnnotateAttr>())
        if (attribute->getAnnotation() == weak_annotation)
            return true;
    return false;
}

bool is_declared_stored(const clang::FieldDecl *field) {
    for (const auto *attribute : field->specific_attrs<clang::BTFDeclTagAttr>())
        if (attribute->getBTFDeclTag() == stored_tag)
            return true;
    return is_weak(field);
}

const clang::FieldDecl *nvm_only_member(clang::QualType type) {
    return find_member(type, is_declared_stored);
}

} // namespace nvl
