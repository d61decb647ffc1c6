// Registers the passes in LLVM's pipeline, at every level of optimization, and by names for opt:
//
//   opt -load-pass-plugin durumcc-passes.so -passes=nvl-begin,...,nvl-simplify,...,nvl-end -S
//   file.ll
#include "passes.h"
#include "runtime.h"

#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"

namespace nvl {
namespace {

using namespace llvm;

// Before any other pass: what only the front end's code tells.
struct Begin : PassInfoMixin<Begin> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
        if (!has_mark(module)) {
            strip_lines(module);
            return PreservedAnalyses::none();
        }
        Options options = options_of(module);
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
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }
};

// When variables have come into registers.
struct Simplify : PassInfoMixin<Simplify> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses) {
        if (!has_mark(module))
            return PreservedAnalyses::all();
        simplify_checks(
            module, analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager());
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }
};

// When functions have been inlined and loops simplified, and before loops are vectorized.
struct End : PassInfoMixin<End> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses) {
        if (!has_mark(module))
            return PreservedAnalyses::all();
        auto &of_functions =
            analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
        auto library_of = [&](Function &function) -> const TargetLibraryInfo & {
            return of_functions.getResult<TargetLibraryAnalysis>(function);
        };
        Options options = options_of(module);
        DenseMap<Function *, Entry> entries = make_versions(module, library_of);
        for (Function &function : module)
            if (!function.isDeclaration())
                make_durable(function, entries.lookup(&function), options, library_of(function));
        tell_aliases(module);
        adapt_sanitized(module);
        forget_effects(module);
        pass_locations(module);
        strip_lines(module);
        remove_mark(module);
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }
};

bool parse(StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
    if (name == "nvl-begin")
        passes.addPass(Begin());
    else if (name == "nvl-simplify")
        passes.addPass(Simplify());
    else if (name == "nvl-end")
        passes.addPass(End());
    else
        return false;
    return true;
}

void add_passes(PassBuilder &builder) {
    builder.registerPipelineStartEPCallback(
        [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(Begin()); });
    builder.registerPipelineEarlySimplificationEPCallback(
        [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(Simplify()); });
    builder.registerOptimizerEarlyEPCallback(
        [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(End()); });
    builder.registerPipelineParsingCallback(parse);
}

} // namespace
} // namespace nvl

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "durumcc-passes", LLVM_VERSION_STRING, nvl::add_passes};
}
