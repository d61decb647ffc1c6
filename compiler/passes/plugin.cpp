// Registers the languages' passes in LLVM's pipeline, at every level of optimization, and by names
// for opt:
//
//   opt -load-pass-plugin durumcc-passes.so -passes=nvl-begin,...,nvl-simplify,...,nvl-end -S
//   file.ll
//
// print-locks says what is known of the locks of any module (locks/print.cpp), print-regions how
// its sections are cut (ido/print.cpp), and regions-twice tests that (ido/twice.h). ido-end<...>
// leaves something out that the crashes of tests have to notice.
#include "common/mark.h"
#include "ido/language.h"
#include "ido/pipeline.h"
#include "ido/print.h"
#include "ido/refused.h"
#include "ido/twice.h"
#include "locks/print.h"
#include "nvl/language.h"
#include "nvl/pipeline.h"

#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"

#include <functional>
#include <optional>

namespace durumcc {
namespace {

using namespace llvm;

// Where LLVM lets others into its pipeline.
enum class Point { PipelineStart, EarlySimplification, OptimizerEarly, OptimizerLast };

// What a language does at a point, to the modules that carry its mark.
struct Step {
    const char *name;
    Point point;
    const Language &language;
    void (*run)(Module &, ModuleAnalysisManager &);
};

const Step steps[] = {
    {"nvl-begin", Point::PipelineStart, nvl::language, nvl::begin},
    {"nvl-simplify", Point::EarlySimplification, nvl::language, nvl::simplify},
    {"nvl-end", Point::OptimizerEarly, nvl::language, nvl::end},
    {"ido-begin", Point::PipelineStart, ido::language, ido::begin},
    {"ido-end", Point::OptimizerLast, ido::language, ido::end},
};

struct StepPass : PassInfoMixin<StepPass> {
    explicit StepPass(const Step &step) : step(step) {}

    PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses) {
        if (!has_mark(module, step.language))
            return PreservedAnalyses::all();
        step.run(module, analyses);
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }

    const Step &step;
};

// The driver was given -fido and intermediate code.
cl::opt<bool> asks_for_sections("durumcc-ido", cl::Hidden,
                                cl::desc("Refuse intermediate code that was made without -fido"));

// A module without any language's mark becomes what Clang makes of it without the driver.
struct LeavePlain : PassInfoMixin<LeavePlain> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
        auto is_marked = [&](const Step &step) { return has_mark(module, step.language); };
        if (any_of(steps, is_marked))
            return PreservedAnalyses::all();
        if (asks_for_sections && !ido::is_compiled(module))
            ido::refuse(module, ido::Refusal::Intermediate);
        strip_lines(module);
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }
};

// For opt alone, and for any module.
struct ToolPass : PassInfoMixin<ToolPass> {
    using Tool = std::function<void(Module &, ModuleAnalysisManager &)>;

    explicit ToolPass(Tool tool) : tool(std::move(tool)) {}

    PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses) {
        tool(module, analyses);
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }

    Tool tool;
};

// Nothing, if it is the name of something else.
ToolPass::Tool tool_named(StringRef name) {
    if (name == "print-locks")
        return [](Module &module, ModuleAnalysisManager &) { locks::print(module, outs()); };
    if (name == "print-regions")
        return [](Module &module, ModuleAnalysisManager &analyses) {
            ido::print(module, analyses, outs());
        };
    if (std::optional<ido::Twice> options = ido::twice_named(name))
        return [options](Module &module, ModuleAnalysisManager &analyses) {
            ido::do_twice(module, analyses, *options);
        };
    if (std::optional<ido::Omitted> omitted = ido::end_named(name))
        return [omitted](Module &module, ModuleAnalysisManager &analyses) {
            ido::end_with(module, analyses, *omitted);
        };
    return nullptr;
}

void add_steps(ModulePassManager &passes, Point point) {
    if (point == Point::PipelineStart)
        passes.addPass(LeavePlain());
    for (const Step &step : steps)
        if (step.point == point)
            passes.addPass(StepPass(step));
}

bool parse(StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
    if (ToolPass::Tool tool = tool_named(name)) {
        passes.addPass(ToolPass(std::move(tool)));
        return true;
    }
    for (const Step &step : steps) {
        if (name != step.name)
            continue;
        passes.addPass(StepPass(step));
        return true;
    }
    return false;
}

void add_passes(PassBuilder &builder) {
    builder.registerPipelineStartEPCallback([](ModulePassManager &passes, OptimizationLevel) {
        add_steps(passes, Point::PipelineStart);
    });
    builder.registerPipelineEarlySimplificationEPCallback(
        [](ModulePassManager &passes, OptimizationLevel) {
            add_steps(passes, Point::EarlySimplification);
        });
    builder.registerOptimizerEarlyEPCallback([](ModulePassManager &passes, OptimizationLevel) {
        add_steps(passes, Point::OptimizerEarly);
    });
    builder.registerOptimizerLastEPCallback([](ModulePassManager &passes, OptimizationLevel) {
        add_steps(passes, Point::OptimizerLast);
    });
    builder.registerPipelineParsingCallback(parse);
}

} // namespace
} // namespace durumcc

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "durumcc-passes", LLVM_VERSION_STRING, durumcc::add_passes};
}
