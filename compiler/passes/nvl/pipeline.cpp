#include "nvl/pipeline.h"

#include "common/effects.h"
#include "common/locations.h"
#include "common/mark.h"
#include "nvl/passes.h"

namespace durumcc::nvl {

using namespace llvm;

void begin(Module &module, ModuleAnalysisManager &) {
    const Options options = options_of(module);
    simplify_transactions(module, options);
    if (!options.no_checks)
        check_comparisons(module);
    refuse_exceptions(module);
    copy_arguments(module);
    adapt_library_calls(module);
    lower_pointers(module, options);
    unwind_after_jumps(module);
    // When the calls of the runtime are there.
    forget_restrict(module);
    tell_aliases(module);
}

void simplify(Module &module, ModuleAnalysisManager &analyses) {
    simplify_checks(module,
                    analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager());
}

void end(Module &module, ModuleAnalysisManager &analyses) {
    auto &of_functions =
        analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    auto library_of = [&](Function &function) -> const TargetLibraryInfo & {
        return of_functions.getResult<TargetLibraryAnalysis>(function);
    };
    const Options options = options_of(module);
    auto wants_two = [&](Function &function) {
        return asks_in_loops(function, language, library_of(function));
    };
    const DenseMap<Function *, Entry> entries =
        make_versions(module, language, language, wants_two);
    for (Function &function : module)
        if (!function.isDeclaration())
            make_durable(function, entries.lookup(&function), options, library_of(function));
    tell_aliases(module);
    adapt_sanitized(module);
    forget_effects(module, language);
    pass_locations(module, language);
    strip_lines(module);
    remove_mark(module, language);
}

} // namespace durumcc::nvl
