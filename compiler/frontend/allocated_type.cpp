// Two say what memory will hold: `sizeof` in its size, and the pointer that becomes of it. A wrong
// answer would lose pointers, so where the two do not agree, or leave something open, there is
// none.
//
//   p = malloc(n * sizeof *p)                           a row of what p leads to
//   p = malloc(sizeof *p + n * sizeof p->tail[0])       with a flexible array member: its tail
//   (struct base *)malloc(sizeof(struct derived))       the larger one, which begins with the other
//   char *p = malloc(n)                                 nobody knows: slabs are made so, too
#include "allocated_type.h"

#include "layout.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"

namespace nvl {
namespace {

using namespace clang;

// What the sizes say.
struct Size {
    // Of each `sizeof`, without qualifiers.
    SmallVector<QualType, 2> types;
    // There may be several of them.
    bool is_row = false;
    // More bytes are added, of which nothing is said.
    bool has_more = false;
};

class Reader {
  public:
    explicit Reader(ASTContext &context) : context(context) {}

    Size read(const Expr *expression) {
        expression = expression->IgnoreParenCasts();
        if (const auto *trait = dyn_cast<UnaryExprOrTypeTraitExpr>(expression)) {
            if (trait->getKind() == UETT_SizeOf)
                return of_type(trait->getTypeOfArgument());
        } else if (const auto *offset = dyn_cast<OffsetOfExpr>(expression)) {
            // Up to the member that follows, of which there are more.
            Size size = of_type(offset->getTypeSourceInfo()->getType());
            size.has_more = true;
            return size;
        } else if (const auto *operation = dyn_cast<BinaryOperator>(expression)) {
            if (std::optional<Size> size = read(*operation))
                return *size;
        }
        Size size;
        size.has_more = !is_zero(expression);
        return size;
    }

  private:
    std::optional<Size> read(const BinaryOperator &operation) {
        Size left = read(operation.getLHS());
        Size right = read(operation.getRHS());
        switch (operation.getOpcode()) {
        case BO_Add:
            left.types.append(right.types);
            left.is_row |= right.is_row;
            left.has_more |= right.has_more;
            return left;
        case BO_Mul:
            if (left.types.empty())
                std::swap(left, right);
            if (left.types.empty() || !right.types.empty())
                return std::nullopt;
            left.is_row = true;
            return left;
        case BO_Shl:
            left.is_row = true;
            return left.types.empty() ? std::nullopt : std::optional(left);
        default:
            return std::nullopt;
        }
    }

    Size of_type(QualType type) const {
        Size size;
        size.is_row = type->isArrayType();
        type = element(type.getNonReferenceType()).getCanonicalType().getUnqualifiedType();
        if (type->isVoidType() || type->isFunctionType())
            size.has_more = true;
        else
            size.types.push_back(type);
        return size;
    }

    bool is_zero(const Expr *expression) const {
        const std::optional<llvm::APSInt> value = expression->getIntegerConstantExpr(context);
        return value && *value == 0;
    }

    ASTContext &context;
};

// What a `char *` leads to may be anything.
bool is_bytes(QualType type) {
    return type->isCharType() || type->isStdByteType();
}

class Judge {
  public:
    explicit Judge(ASTContext &context) : context(context) {}

    AllocatedType judge(const Size &size, QualType target, const Expr *whole) {
        if (size.types.empty())
            return of_target(target, whole);
        const QualType type = size.types.front();
        for (const QualType other : size.types)
            if (other != type && !is_tail_of(type, other))
                return untyped("its size is that of " + spelled(context, type) + " and of " +
                               spelled(context, other));
        std::optional<QualType> agreed = agree(type, target);
        if (!agreed)
            return untyped("its size is that of " + spelled(context, type) +
                           ", and it becomes a pointer to " + spelled(context, target));
        const RecordDecl *record = record_of(type);
        const bool has_tail = record && record->hasFlexibleArrayMember();
        const bool is_open = size.has_more || (size.types.size() > 1 && has_tail);
        if (is_open && has_tail && size.is_row == (size.types.size() > 1))
            return told(*agreed);
        // Of numbers there may be some more.
        if (size.has_more && !type->isArithmeticType())
            return untyped("nothing says what lies behind the " + spelled(context, type) +
                           " in it");
        if (has_tail && size.is_row)
            return untyped("a row of " + spelled(context, type) + ", which has no end");
        return told(*agreed);
    }

    AllocatedType told(QualType type) {
        std::string reason;
        if (std::optional<std::string> text = layout_text(context, type, Hidden::Any, &reason))
            return {text, ""};
        return untyped(reason);
    }

    static AllocatedType untyped(std::string reason) { return {std::nullopt, std::move(reason)}; }

  private:
    // Without any `sizeof`.
    AllocatedType of_target(QualType target, const Expr *whole) {
        if (target.isNull() || target->isFunctionType())
            return untyped("neither a sizeof nor a pointer that it becomes says what it holds");
        target = element(target).getCanonicalType().getUnqualifiedType();
        if (is_bytes(target))
            return untyped("bytes may hold anything: 'sizeof(char)' in the size says that these "
                           "hold text");
        if (target->isRecordType() && !is_row_of(target, whole))
            return untyped("its size is no sizeof of " + spelled(context, target));
        return told(target);
    }

    bool is_row_of(QualType type, const Expr *whole) const {
        if (!whole || type->isIncompleteType())
            return false;
        const std::optional<llvm::APSInt> size = whole->getIntegerConstantExpr(context);
        const uint64_t one = context.getTypeSizeInChars(type).getQuantity();
        return size && one && size->getZExtValue() % one == 0;
    }

    // Which of the two it is; nothing if they say different things.
    std::optional<QualType> agree(QualType type, QualType target) {
        if (target.isNull() || target->isFunctionType())
            return type;
        target = element(target).getCanonicalType().getUnqualifiedType();
        if (type == target || is_bytes(target) || begins_with(type, target))
            return type;
        const bool are_pointers = type->isPointerType() && target->isPointerType();
        const bool are_numbers = type->isArithmeticType() && target->isArithmeticType();
        if (are_pointers || are_numbers)
            return target;
        return std::nullopt;
    }

    static bool begins_with(QualType type, QualType first) {
        while (const RecordDecl *record = record_of(type)) {
            if (record->isUnion() || record->field_empty())
                return false;
            type =
                element(record->field_begin()->getType()).getCanonicalType().getUnqualifiedType();
            if (type == first)
                return true;
        }
        return false;
    }

    // Whether the elements are those of the flexible array member that the type has.
    bool is_tail_of(QualType type, QualType elements) const {
        const RecordDecl *record = record_of(type);
        if (!record || !record->hasFlexibleArrayMember())
            return false;
        const FieldDecl *last = nullptr;
        for (const FieldDecl *member : record->fields())
            last = member;
        return last && last->getType()->isIncompleteArrayType() &&
               element(last->getType()).getCanonicalType().getUnqualifiedType() == elements;
    }

    ASTContext &context;
};

} // namespace

AllocatedType type_of_call(ASTContext &context, ArrayRef<const Expr *> sizes, QualType target) {
    Reader reader(context);
    Judge judge(context);
    if (sizes.empty())
        return Judge::untyped("it has no size");
    Size size = reader.read(sizes.back());
    if (sizes.size() == 1)
        return judge.judge(size, target, sizes.back());
    const Expr *count = sizes.front();
    if (size.types.empty()) {
        // calloc(sizeof *p, n)
        size = reader.read(sizes.front());
        count = sizes.back();
    }
    const std::optional<llvm::APSInt> number = count->getIntegerConstantExpr(context);
    size.is_row |= !number || *number != 1;
    return judge.judge(size, target, nullptr);
}

AllocatedType type_of_new(ASTContext &context, const CXXNewExpr &made) {
    const QualType type = element(made.getAllocatedType()).getCanonicalType().getUnqualifiedType();
    if (type->isStdByteType() || type->isSpecificBuiltinType(BuiltinType::UChar))
        return Judge::untyped("bytes may hold anything");
    if (made.isArray() &&
        (made.doesUsualArrayDeleteWantSize() || made.getAllocatedType().isDestructedType()))
        return Judge::untyped("the length of an array whose elements have destructors lies in it");
    return Judge(context).told(type);
}

} // namespace nvl
