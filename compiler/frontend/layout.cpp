#include "layout.h"

#include "canonical.h"

#include "clang/AST/DeclCXX.h"
#include "clang/AST/RecordLayout.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSwitch.h"

namespace nvl {
namespace {

using namespace clang;

// Whether a text says all of a type, and of those that its pointers lead to.
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

  private:
    bool look_at(QualType type) {
        type = context.getBaseElementType(type).getCanonicalType();
        if (const auto *atomic = type->getAs<AtomicType>())
            type = atomic->getValueType().getCanonicalType();
        if (type->isDependentType() || type->isVariablyModifiedType())
            return false;
        if (type->isPointerType()) {
            QualType target = type->getPointeeType();
            if (!target->isVoidType() && !target->isFunctionType())
                open.push_back(target);
            return true;
        }
        if (type->isRecordType())
            return look_at(*type->castAs<RecordType>()->getDecl());
        return (type->isArithmeticType() || type->isEnumeralType() || type->isAnyComplexType() ||
                type->isVectorType()) &&
               !type->isIncompleteType();
    }

    bool look_at(const RecordDecl &declared) {
        const RecordDecl *record = declared.getDefinition();
        if (!record || record->isInvalidDecl())
            return false;
        if (!seen.insert(record).second || is_lock(*record))
            return true;
        const auto *one = dyn_cast<CXXRecordDecl>(record);
        if (one && (one->isDynamicClass() || one->getNumBases() > 0))
            return false;
        if (record->isUnion())
            return !has_pointer(*record);
        const ASTRecordLayout &layout = context.getASTRecordLayout(record);
        for (const FieldDecl *member : record->fields()) {
            if (member->isBitField())
                continue;
            QualType type = member->getType();
            const uint64_t align =
                context.toBits(context.getTypeAlignInChars(context.getBaseElementType(type)));
            // What does not lie where its type would have it is told as bytes.
            if (layout.getFieldOffset(member->getFieldIndex()) % align != 0)
                return false;
            open.push_back(type);
        }
        return true;
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
    llvm::SmallPtrSet<const RecordDecl *, 16> seen;
};

} // namespace

std::optional<std::string> layout_text(ASTContext &context, QualType type) {
    if (!Walk(context).is_told(type))
        return std::nullopt;
    return canonical_text(context, type);
}

} // namespace nvl
