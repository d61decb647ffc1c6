#include "ido/sections.h"

namespace durumcc::ido {

using namespace llvm;

Inside::Inside(const Function &function, const locks::Held &held) {
    if (function.isDeclaration() || function.hasFnAttribute(dispatches))
        return;
    is_version = function.hasFnAttribute(locks::entered_inside);
    const Depth entry = held.entry(function);
    const Depths depths(function, held);
    depths.each(function, [&](const Instruction &instruction, std::optional<Depth> depth) {
        if (depth && (entry + *depth).may_be_inside())
            places.insert({&instruction, entry + *depth});
    });
}

Inside Inside::everywhere(const Function &function) {
    Inside inside;
    for (const BasicBlock &block : function)
        for (const Instruction &instruction : block)
            inside.places.insert({&instruction, Depth{1, 1}});
    return inside;
}

} // namespace durumcc::ido
