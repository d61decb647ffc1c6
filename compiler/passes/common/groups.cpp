#include "groups.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"

namespace durumcc {
namespace {

using namespace llvm;

// Adds the bytes of a write to a span that they touch, and that span to others which it touches
// then.
void add(Group &group, const Write &write, const DataLayout &layout) {
    Span span{write.instruction, write.bytes, write.is_announced};
    if (!span.bytes.length && !span.is_announced) {
        APInt offset(64, 0);
        span.bytes.start = write.bytes.start->stripAndAccumulateConstantOffsets(
            layout, offset, /*AllowNonInbounds=*/true);
        span.bytes.offset = offset.getSExtValue();
        auto touches = [&](const Span &other) {
            int64_t begin = span.bytes.offset, end = begin + int64_t(span.bytes.count);
            int64_t other_begin = other.bytes.offset;
            return !other.bytes.length && !other.is_announced &&
                   other.bytes.start == span.bytes.start && other_begin <= end &&
                   begin <= other_begin + int64_t(other.bytes.count);
        };
        for (Span *other; (other = find_if(group.spans, touches)) != group.spans.end();) {
            int64_t begin = std::min(span.bytes.offset, other->bytes.offset);
            int64_t end = std::max(span.bytes.offset + int64_t(span.bytes.count),
                                   other->bytes.offset + int64_t(other->bytes.count));
            span.bytes.offset = begin;
            span.bytes.count = uint64_t(end - begin);
            if (other->first->comesBefore(span.first))
                span.first = other->first;
            group.spans.erase(other);
        }
    }
    group.spans.push_back(span);
    group.last = write.instruction;
}

} // namespace

SmallVector<Group, 8> group(Function &function, ArrayRef<Write> writes) {
    const DataLayout &layout = function.getParent()->getDataLayout();
    DenseMap<const Instruction *, const Write *> by_instruction;
    SmallPtrSet<const BasicBlock *, 16> blocks;
    for (const Write &write : writes) {
        by_instruction[write.instruction] = &write;
        blocks.insert(write.instruction->getParent());
    }
    SmallVector<Group, 8> groups;
    for (const BasicBlock &block : function) {
        if (!blocks.contains(&block))
            continue;
        bool is_open = false;
        for (const Instruction &instruction : block) {
            bool ends = function.hasOptNone() || !may_be_passed(instruction);
            if (const Write *write = by_instruction.lookup(&instruction)) {
                if (!is_open || ends)
                    groups.emplace_back().first = write->instruction;
                add(groups.back(), *write, layout);
                is_open = true;
            }
            is_open &= !ends;
        }
    }
    return groups;
}

} // namespace durumcc
