#include "layout.h"

#include "canonical.h"
#include "types.h"

#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/RecordLayout.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSwitch.h"

namespace nvl {
namespace {

using namespace clang;

// Whether a text says all of the bytes of a type.
class Walk {
  public:
    explicit Walk(ASTContext &context) : context(context) {}

    bool is_told(QualType type) {
        open.push_back(type);
        while (!open.empty())
            if (!look_at(open.pop_back_val()))
                return false;
        return true;
    }

    // Why not.
    std::string reason;
    // What its pointers lead to.
    SmallVector<QualType, 8> targets;

  private:
    bool hides(QualType type, const char *what) {
        reason = spelled(context, type) + what;
        return false;
    }

    bool look_at(QualType type) {
        type = context.getBaseElementType(type).getCanonicalType();
        if (const auto *atomic = type->getAs<AtomicType>())
            type = atomic->getValueType().getCanonicalType();
        if (type->isDependentType() || type->isVariablyModifiedType())
            return hides(type, " has another size each time");
        if (type->isPointerType()) {
            QualType target = type->getPointeeType();
            if (!target->isVoidType() && !target->isFunctionType())
                targets.push_back(target);
            return true;
        }
        if (type->isRecordType())
            return look_at(*type->castAs<RecordType>()->getDecl());
        const bool is_number = type->isArithmeticType() || type->isEnumeralType() ||
                               type->isAnyComplexType() || type->isVectorType();
        return (is_number && !type->isIncompleteType()) ||
               hides(type, " is no type of C whose pointers are known");
    }

    bool look_at(const RecordDecl &declared) {
        const RecordDecl *record = declared.getDefinition();
        const QualType type = context.getRecordType(&declared);
        if (!record || record->isInvalidDecl())
            return hides(type, " is not defined in this file");
        if (is_lock(*record))
            return true;
        const auto *one = dyn_cast<CXXRecordDecl>(record);
        if (one && one->isDynamicClass())
            return hides(type, " has virtual functions");
        if (one && one->getNumBases() > 0)
            return hides(type, " has a base class");
        // `alignas(T) unsigned char place[sizeof(T)]`, and std::aligned_storage. Nobody aligns
        // text.
        if (llvm::any_of(record->fields(), is_place))
            return hides(type, " has aligned bytes, in which an object may lie");
        if (record->isUnion())
            return !has_pointer(*record) || hides(type, " is a union with a pointer");
        const ASTRecordLayout &layout = context.getASTRecordLayout(record);
        for (const FieldDecl *member : record->fields()) {
            if (member->isBitField())
                continue;
            QualType inner = member->getType();
            const uint64_t align =
                context.toBits(context.getTypeAlignInChars(context.getBaseElementType(inner)));
            // What does not lie where its type would have it is told as bytes.
            if (layout.getFieldOffset(member->getFieldIndex()) % align != 0)
                return hides(type, " is packed");
            open.push_back(inner);
        }
        return true;
    }

    static bool is_place(const FieldDecl *member) {
        const QualType type = element(member->getType());
        const RecordDecl *inner = record_of(type);
        // One byte alone is aligned to have a cache line for itself, as locks and flags are.
        const bool is_bytes =
            ((type->isStdByteType() || type->isCharType()) && member->getType()->isArrayType()) ||
            (inner && inner->field_empty());
        return is_bytes &&
               (member->hasAttr<AlignedAttr>() || (inner && inner->hasAttr<AlignedAttr>()));
    }

    // The threads' library's, whose state after a crash is nobody's.
    static bool is_lock(const RecordDecl &record) {
        const TypedefNameDecl *alias = record.getTypedefNameForAnonDecl();
        return alias && llvm::StringSwitch<bool>(alias->getName())
                            .Cases("pthread_mutex_t", "pthread_rwlock_t", "pthread_cond_t", true)
                            .Cases("mtx_t", "cnd_t", true)
                            .Default(false);
    }

    bool has_pointer(const RecordDecl &record) const {
        return llvm::any_of(record.fields(), [&](const FieldDecl *member) {
            QualType type = context.getBaseElementType(member->getType()).getCanonicalType();
            if (const auto *inner = type->getAs<RecordType>()) {
                const RecordDecl *definition = inner->getDecl()->getDefinition();
                return !definition || has_pointer(*definition);
            }
            return !type->isArithmeticType() && !type->isEnumeralType();
        });
    }

    ASTContext &context;
    SmallVector<QualType, 16> open;
};

// What it leads to, and what that leads to. Each type is looked at once.
class Reached {
  public:
    explicit Reached(ASTContext &context) : context(context) {}

    // Whether a file could tell more of something than this one does.
    bool finds_undefined(QualType type) {
        is_told(type);
        while (!open.empty()) {
            QualType next = open.pop_back_val();
            if (element(next)->isRecordType() && !record_of(next))
                return true;
            is_told(next);
        }
        return false;
    }

    bool is_told(QualType type) {
        auto [known, is_new] = seen.insert({context.getCanonicalType(type).getTypePtr(), false});
        if (!is_new)
            return known->second;
        Walk walk(context);
        const bool found = walk.is_told(type);
        if (found)
            open.append(walk.targets);
        known->second = found;
        return found;
    }

  private:
    ASTContext &context;
    SmallVector<QualType, 16> open;
    llvm::DenseMap<const Type *, bool> seen;
};

} // namespace

std::optional<std::string> layout_text(ASTContext &context, QualType type, Hidden hidden,
                                       std::string *reason) {
    Walk walk(context);
    if (!walk.is_told(type)) {
        if (reason)
            *reason = walk.reason;
        return std::nullopt;
    }
    Reached reached(context);
    if (hidden == Hidden::Refused && reached.finds_undefined(type))
        return std::nullopt;
    return canonical_text(context, type, [&](QualType target) { return reached.is_told(target); });
}

} // namespace nvl
