// Both texts have one line for the type itself and one for each type that pointers lead to, in the
// order of discovery, so that recursion ends: a pointer is the number of a line.
//
// Names are those of tags, or of typedefs where there is no tag. A struct with neither is named
// after the member that it is the type of; its place in a file is never part of a text.
#include "canonical.h"

#include "types.h"

#include "clang/AST/Decl.h"
#include "clang/AST/RecordLayout.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

namespace nvl {
namespace {

using namespace clang;

constexpr size_t name_bytes_max = 255;

std::string quoted(StringRef name) {
    return "\"" + name.take_front(name_bytes_max).str() + "\"";
}

std::string name_of(const TagDecl *declaration, StringRef outer) {
    static const llvm::StringSet<> taken = {"u8",  "u16", "u32", "u64", "i8",   "i16",
                                            "i32", "i64", "f32", "f64", "bool", "char"};
    StringRef name = declaration->getName();
    if (name.empty())
        if (const TypedefNameDecl *alias = declaration->getTypedefNameForAnonDecl())
            name = alias->getName();
    if (name.empty())
        name = outer;
    return taken.contains(name) ? "struct " + name.str() : name.str();
}

// What both texts share: lines, and the walk through arrays and pointers.
class Text {
  public:
    explicit Text(ASTContext &context) : context(context), out(text) {}
    virtual ~Text() = default;

    std::string write(QualType type) {
        line_of(type, "anonymous");
        // The list grows while it is written.
        for (size_t i = 0; i < lines.size(); i++) {
            Line line = lines[i];
            write_type(line.type, line.name);
            out << '\n';
        }
        return text;
    }

  protected:
    virtual void write_record(const RecordDecl *record, const std::string &outer) = 0;
    virtual void write_enum(const EnumType *type, const std::string &outer) = 0;
    virtual void write_scalar(QualType type) = 0;
    virtual bool is_named(QualType) const { return true; }

    // `outer` names a struct without a name of its own. `is_weak`: what the member says.
    void write_type(QualType type, const std::string &outer, bool is_weak = false) {
        type = plain(type);
        if (const auto *pointer = type->getAs<PointerType>()) {
            write_pointer(pointer->getPointeeType(), outer, is_weak);
        } else if (const auto *array = dyn_cast<ConstantArrayType>(type)) {
            out << '[';
            write_type(array->getElementType(), outer, is_weak);
            out << ';' << array->getZExtSize() << ']';
        } else if (const auto *array = dyn_cast<IncompleteArrayType>(type)) {
            out << '[';
            write_type(array->getElementType(), outer, is_weak);
            out << ";tail]";
        } else if (const auto *vector = type->getAs<VectorType>()) {
            out << '[';
            write_type(vector->getElementType(), outer);
            out << ';' << vector->getNumElements() << ']';
        } else if (const auto *complex = type->getAs<ComplexType>()) {
            out << '[';
            write_type(complex->getElementType(), outer);
            out << ";2]";
        } else if (const auto *record = type->getAs<RecordType>()) {
            write_record(record->getDecl()->getDefinition(), outer);
        } else if (const auto *enumeration = type->getAs<EnumType>()) {
            write_enum(enumeration, outer);
        } else {
            write_scalar(type);
        }
    }

    // Without qualifiers and typedefs. An atomic object is stored like an ordinary one.
    QualType plain(QualType type) const {
        type = context.getCanonicalType(type).getUnqualifiedType();
        if (const auto *atomic = type->getAs<AtomicType>())
            return plain(atomic->getValueType());
        return context.getCanonicalType(context.getUnqualifiedArrayType(type));
    }

    void write_size(QualType type) {
        out << '(' << context.getTypeSizeInChars(type).getQuantity() << ','
            << context.getTypeAlignInChars(type).getQuantity() << ')';
    }

    ASTContext &context;
    std::string text;
    llvm::raw_string_ostream out;

  private:
    struct Line {
        QualType type;
        std::string name;
    };

    size_t line_of(QualType type, const std::string &name) {
        type = plain(type);
        for (size_t i = 0; i < lines.size(); i++)
            if (lines[i].type == type)
                return i;
        lines.push_back({type, name});
        return lines.size() - 1;
    }

    void write_pointer(QualType target, const std::string &outer, bool is_weak) {
        out << (is_weak ? '~' : '*');
        if (target->isVoidType() || target->isFunctionType() || !is_named(target))
            out << "any";
        else
            out << line_of(target, outer);
    }

    std::vector<Line> lines;
};

std::string path(const std::string &outer, const FieldDecl *member) {
    return outer + "." + member->getName().str();
}

// The layout, in the words of docs/format/types.md. What these words do not have is `opaque` bytes:
// it has no pointers, and the other text tells programs apart that disagree about it.
class Canonical : public Text {
  public:
    Canonical(ASTContext &context, llvm::function_ref<bool(QualType)> named)
        : Text(context), named(named) {}

  private:
    bool is_named(QualType type) const override { return named(type); }

    void write_record(const RecordDecl *record, const std::string &outer) override {
        QualType type = context.getRecordType(record);
        if (record->isUnion()) {
            out << "opaque";
            write_size(type);
            return;
        }
        std::string name = name_of(record, outer);
        out << "struct " << quoted(name);
        write_size(type);
        out << '{';
        write_members(record, name, 0, alignment(type));
        out << '}';
    }

    void write_enum(const EnumType *type, const std::string &) override {
        write_scalar(context.getCanonicalType(type->getDecl()->getIntegerType()));
    }

    void write_scalar(QualType type) override {
        uint64_t bits = context.getTypeSize(type);
        if (type->isBooleanType())
            out << "bool";
        else if (type->isIntegerType() && bits <= 64 && !type->isBitIntType())
            out << (type->isSignedIntegerType() ? 'i' : 'u') << bits;
        else if (type->isRealFloatingType() && (bits == 32 || bits == 64))
            out << 'f' << bits;
        else {
            out << "opaque";
            write_size(type);
        }
    }

    // `base`: where the struct begins in the one that is written, which has an alignment of
    // `whole`.
    void write_members(const RecordDecl *record, const std::string &name, uint64_t base,
                       uint64_t whole) {
        const ASTRecordLayout &layout = context.getASTRecordLayout(record);
        auto end = record->field_end();
        for (auto member = record->field_begin(); member != end;) {
            if (member->isBitField()) {
                member = write_bits(layout, member, end, base);
                continue;
            }
            write_member(*member, name, base + layout.getFieldOffset(member->getFieldIndex()) / 8,
                         whole);
            ++member;
        }
    }

    void write_member(const FieldDecl *member, const std::string &name, uint64_t offset,
                      uint64_t whole) {
        QualType type = member->getType();
        bool is_tail = type->isIncompleteArrayType();
        uint64_t size = is_tail ? 0 : context.getTypeSizeInChars(type).getQuantity();
        if (!is_tail && size == 0)
            return;
        const RecordDecl *inner = record_of(type);
        if (member->isAnonymousStructOrUnion() && inner && !inner->isUnion())
            return write_members(inner, name, offset, whole);
        // In a packed struct.
        bool is_astray = offset % alignment(type) != 0 || alignment(type) > whole;
        if (is_tail && is_astray)
            return;
        std::string own = member->getName().str();
        if (own.empty() && inner)
            own = union_name(inner);
        if (own.empty())
            own = "union " + std::to_string(offset);
        out << offset << ':' << quoted(own) << ':';
        if (is_astray)
            out << "opaque(" << size << ",1)";
        else
            write_type(type, path(name, member), is_weak(member));
        out << ';';
    }

    // An anonymous union goes by the names of its members, which are the outer struct's.
    static std::string union_name(const RecordDecl *record) {
        std::string name;
        for (const FieldDecl *member : record->fields()) {
            std::string own = member->isAnonymousStructOrUnion()
                                  ? union_name(record_of(member->getType()))
                                  : member->getName().str();
            if (!own.empty())
                name += (name.empty() ? "" : "|") + own;
        }
        return name;
    }

    // Bit-fields that follow each other are bytes that are named after all of them: `"a:u3 b:i5"`.
    RecordDecl::field_iterator write_bits(const ASTRecordLayout &layout,
                                          RecordDecl::field_iterator member,
                                          RecordDecl::field_iterator end, uint64_t base) {
        std::string name;
        uint64_t first = UINT64_MAX;
        uint64_t last = 0;
        for (; member != end && member->isBitField(); ++member) {
            if (member->isUnnamedBitField())
                continue;
            uint64_t offset = layout.getFieldOffset(member->getFieldIndex());
            uint64_t width = member->getBitWidthValue(context);
            first = std::min(first, offset / 8);
            last = std::max(last, (offset + width + 7) / 8);
            name += (name.empty() ? "" : " ") + member->getName().str() + ":" +
                    (member->getType()->isSignedIntegerOrEnumerationType() ? "i" : "u") +
                    std::to_string(width);
        }
        if (!name.empty())
            out << base + first << ':' << quoted(name) << ":opaque(" << last - first << ",1);";
        return member;
    }

    uint64_t alignment(QualType type) const {
        return context.getTypeAlignInChars(context.getBaseElementType(type)).getQuantity();
    }

    llvm::function_ref<bool(QualType)> named;
};

// Everything that programs must agree on.
class Checked : public Text {
  public:
    using Text::Text;

  private:
    void write_record(const RecordDecl *record, const std::string &outer) override {
        const ASTRecordLayout &layout = context.getASTRecordLayout(record);
        std::string name = name_of(record, outer);
        out << record->getKindName() << ' ' << quoted(name);
        write_size(context.getRecordType(record));
        out << '{';
        for (const FieldDecl *member : record->fields()) {
            out << layout.getFieldOffset(member->getFieldIndex());
            if (member->isBitField())
                out << '/' << member->getBitWidthValue(context);
            out << ' ' << member->getName() << ' ';
            write_type(member->getType(), path(name, member), is_weak(member));
            out << ';';
        }
        out << '}';
    }

    void write_enum(const EnumType *type, const std::string &outer) override {
        const EnumDecl *declaration = type->getDecl();
        out << "enum " << quoted(name_of(declaration, outer)) << ' ';
        write_scalar(context.getCanonicalType(declaration->getIntegerType()));
        out << '{';
        for (const EnumConstantDecl *constant : declaration->enumerators())
            out << constant->getName() << '=' << llvm::toString(constant->getInitVal(), 10) << ';';
        out << '}';
    }

    // Width and signedness, not the name: `long` and `long long` may be the same.
    void write_scalar(QualType type) override {
        uint64_t bits = context.getTypeSize(type);
        if (type->isBooleanType())
            out << "bool";
        else if (const auto *exact = type->getAs<BitIntType>())
            out << (exact->isSigned() ? "bits i" : "bits u") << exact->getNumBits();
        else if (type->isIntegerType())
            out << (type->isSignedIntegerType() ? 'i' : 'u') << bits;
        else if (type->isRealFloatingType())
            out << 'f' << bits << '.'
                << llvm::APFloat::semanticsPrecision(context.getFloatTypeSemantics(type));
        else
            out << type.getAsString();
    }
};

} // namespace

std::string canonical_text(ASTContext &context, QualType type,
                           llvm::function_ref<bool(QualType)> is_named) {
    return Canonical(context, is_named).write(type);
}

std::string checked_text(ASTContext &context, QualType type) {
    return Checked(context).write(type);
}

Reach reach(QualType type) {
    Reach result;
    llvm::SmallPtrSet<const RecordDecl *, 16> seen;
    SmallVector<QualType, 16> open{type};
    while (!open.empty()) {
        type = element(open.pop_back_val());
        if (const auto *atomic = type->getAs<AtomicType>())
            type = atomic->getValueType();
        if (type->isPointerType()) {
            QualType target = type->getPointeeType();
            // That it leads out of NVM is the mistake, and has been told.
            if (!is_nvl(target) && element(target)->isRecordType() && !record_of(target))
                result.is_sound = false;
            else
                open.push_back(target);
            continue;
        }
        const auto *tag = type->getAs<RecordType>();
        if (!tag)
            continue;
        const RecordDecl *record = tag->getDecl()->getDefinition();
        if (!record)
            result.missing = tag->getDecl();
        else if (!is_sound(type))
            result.is_sound = false;
        else if (seen.insert(record).second)
            for (const FieldDecl *member : record->fields())
                open.push_back(member->getType());
    }
    return result;
}

uint64_t hash(StringRef text) {
    uint64_t h = 0xcbf29ce484222325;
    for (unsigned char byte : text)
        h = (h ^ byte) * 0x100000001b3;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53;
    h ^= h >> 33;
    return h == 0 ? 1 : h;
}

} // namespace nvl
