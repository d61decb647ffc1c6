// A function that does so on some ways only, as far as anybody sees, keeps its symbol: then its
// declaration is believed.
#include "locks/changes.h"

namespace durumcc::locks {

using namespace llvm;

namespace {

constexpr const char end[] = ".durum_locks.";

} // namespace

std::optional<Depth> told_change(const GlobalValue &function) {
    StringRef rest = function.getName();
    const size_t at = rest.find(end);
    int change;
    if (at == StringRef::npos)
        return std::nullopt;
    rest = rest.drop_front(at + StringRef(end).size());
    if (rest.consumeInteger(10, change))
        return std::nullopt;
    return Depth{change, change};
}

SmallVector<Function *, 2> tell_changes(Module &module, const Held &held) {
    SmallVector<Function *, 2> wrong;
    for (Function &function : module) {
        if (function.isDeclaration())
            continue;
        const std::optional<Depth> returns = held.summary(function).returns;
        const std::optional<Depth> told = told_change(function);
        if (!returns)
            continue;
        const bool is_certain = returns->min == returns->max && returns->min != 0;
        if (told && (told->min < returns->min || told->min > returns->max))
            wrong.push_back(&function);
        else if (!told && is_certain && function.hasExternalLinkage() &&
                 function.getName() != "main")
            function.setName(function.getName() + end + Twine(returns->min));
    }
    return wrong;
}

} // namespace durumcc::locks
