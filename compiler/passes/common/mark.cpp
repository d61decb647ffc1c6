#include "mark.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace durumcc {
namespace {

using namespace llvm;

constexpr const char mark_name[] = "needs_passes";
constexpr const char undefined_name[] = "code_was_not_compiled_by_durumcc";
constexpr const char options_name[] = "options";
// What the front end has read.
constexpr const char variables_name[] = "variables";

std::string name_of(const Language &language, StringRef name) {
    return (language.prefix() + name).str();
}

// Modules that were linked before they came here have several, with numbers behind the name.
bool is_named(const Constant *constant, StringRef name) {
    StringRef own = constant->getName();
    // As C++ calls a variable of one file.
    own.consume_front("_ZL" + std::to_string(name.size()));
    return own == name || (own.starts_with(name) && own[name.size()] == '.');
}

} // namespace

bool has_mark(const Module &module, const Language &language) {
    return module.getNamedGlobal(name_of(language, undefined_name)) != nullptr;
}

uint64_t option_bits(const Module &module, const Language &language) {
    const std::string name = name_of(language, options_name);
    for (const GlobalVariable &variable : module.globals())
        if (is_named(&variable, name) && variable.hasInitializer())
            if (const auto *bits = dyn_cast<ConstantInt>(variable.getInitializer()))
                return bits->getZExtValue();
    return 0;
}

void remove_mark(Module &module, const Language &language) {
    const std::string mark = name_of(language, mark_name);
    const std::string options = name_of(language, options_name);
    const std::string variables = name_of(language, variables_name);
    auto is_ours = [&](const Constant *constant) {
        return is_named(constant, mark) || is_named(constant, options) ||
               is_named(constant, variables);
    };
    removeFromUsedLists(module,
                        [&](Constant *constant) { return is_ours(constant->stripPointerCasts()); });
    // The lists leave constants behind that nobody uses.
    auto remove = [](GlobalVariable &variable) {
        variable.removeDeadConstantUsers();
        if (variable.use_empty())
            variable.eraseFromParent();
    };
    for (GlobalVariable &variable : make_early_inc_range(module.globals()))
        if (is_ours(&variable))
            remove(variable);
    if (GlobalVariable *undefined = module.getNamedGlobal(name_of(language, undefined_name)))
        remove(*undefined);
}

void strip_lines(Module &module) {
    const NamedMDNode *units = module.getNamedMetadata("llvm.dbg.cu");
    // debug_compile_units() leaves out those that say NoDebug: any other one was asked for by -g.
    if (!units || !module.debug_compile_units().empty())
        return;
    StripDebugInfo(module);
    // The version of what is gone.
    NamedMDNode *flags = module.getModuleFlagsMetadata();
    if (!flags)
        return;
    SmallVector<MDNode *, 8> kept;
    for (MDNode *flag : flags->operands())
        if (cast<MDString>(flag->getOperand(1))->getString() != "Debug Info Version")
            kept.push_back(flag);
    flags->clearOperands();
    for (MDNode *flag : kept)
        flags->addOperand(flag);
    if (kept.empty())
        flags->eraseFromParent();
}

} // namespace durumcc
