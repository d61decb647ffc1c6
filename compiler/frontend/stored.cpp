// What an object in NVM may consist of (paper, §3.4 and Table 1): its pointers lead into NVM and
// have a type, so that the runtime can count them and a store can be read by others.
//
// A struct says nothing when it is defined, because it may be used in volatile memory only. The
// error is at the first pointer into NVM that leads to one; a note shows the member.
#include "checks.h"
#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/RecordLayout.h"

namespace nvl {
namespace {

using namespace clang;

enum class Fault { None, ToVolatile, Void, Atomic };

Fault fault_of(QualType type) {
    if (const auto *atomic = type->getAs<AtomicType>()) {
        QualType value = atomic->getValueType();
        return value->isAnyPointerType() || has_nvl_pointer(value) ? Fault::Atomic : Fault::None;
    }
    if (type->isBlockPointerType())
        return Fault::ToVolatile;
    if (!type->isPointerType())
        return Fault::None;
    QualType target = type->getPointeeType();
    if (!is_nvl(target))
        return Fault::ToVolatile;
    return target->isVoidType() ? Fault::Void : Fault::None;
}

Diag diag_of(Fault fault) {
    switch (fault) {
    case Fault::Void:
        return Diag::StoredVoid;
    case Fault::Atomic:
        return Diag::AtomicPointer;
    default:
        return Diag::ToVolatile;
    }
}

void note_member(State &state, const FieldDecl *member) {
    note(state.diagnostics(), member->getLocation(), "member %0 of %1")
        << member << spelled(state.context, state.context.getRecordType(member->getParent()));
}

// `int *m` becomes `nvl int *m`; what has more stars needs a decision.
FixItHint qualified_target(const FieldDecl *member) {
    QualType target = element(member->getType())->getPointeeType();
    SourceLocation begin = member->getBeginLoc();
    if (target.isNull() || is_nvl(target) || target->isFunctionType() || target->isVoidType() ||
        target->isPointerType() || !begin.isFileID())
        return FixItHint();
    return FixItHint::CreateInsertion(begin, "nvl ");
}

class Members {
  public:
    Members(State &state, SourceLocation location) : state(state), location(location) {}

    void look_at(const RecordDecl *record) {
        if (!is_sound(state.context.getRecordType(record)) ||
            !state.looked_at.insert(record).second)
            return;
        const ASTRecordLayout &layout = state.context.getASTRecordLayout(record);
        for (const FieldDecl *member : record->fields()) {
            QualType type = element(member->getType());
            Fault fault = fault_of(type);
            if (fault != Fault::None) {
                report(state.diagnostics(), location, diag_of(fault))
                    << spelled(state.context, member->getType()) << qualified_target(member);
                note_member(state, member);
            }
            if (has_nvl_pointer(member->getType()))
                look_at_place(layout, member);
            if (const RecordDecl *inner = record_of(type))
                look_at(inner);
        }
    }

  private:
    void look_at_place(const ASTRecordLayout &layout, const FieldDecl *member) {
        if (member->getType()->isIncompleteArrayType()) {
            report(state.diagnostics(), location, Diag::Flexible) << member;
            note_member(state, member);
        }
        uint64_t offset = layout.getFieldOffset(member->getFieldIndex()) / 8;
        if (offset % 8 != 0 || layout.getAlignment().getQuantity() < 8) {
            report(state.diagnostics(), location, Diag::Packed) << member;
            note_member(state, member);
        }
    }

    State &state;
    SourceLocation location;
};

} // namespace

void check_stored(State &state, QualType type, SourceLocation location) {
    type = element(type);
    Fault fault = fault_of(type);
    if (fault != Fault::None) {
        report(state.diagnostics(), location, diag_of(fault)) << spelled(state.context, type);
        return;
    }
    const auto *tag = type->getAs<RecordType>();
    if (!tag)
        return;
    if (const RecordDecl *record = tag->getDecl()->getDefinition())
        Members(state, location).look_at(record);
    else
        state.incomplete.insert({tag->getDecl()->getFirstDecl(), location});
}

void check_incomplete_again(State &state) {
    for (const auto &[declaration, location] : state.incomplete)
        if (const auto *record = dyn_cast_or_null<RecordDecl>(declaration->getDefinition()))
            Members(state, location).look_at(record);
}

} // namespace nvl
