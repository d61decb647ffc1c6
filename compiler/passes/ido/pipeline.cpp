#include "ido/pipeline.h"

#include "common/effects.h"
#include "common/mark.h"
#include "ido/code.h"
#include "ido/instrument.h"
#include "ido/language.h"
#include "ido/locals.h"
#include "ido/lock_calls.h"
#include "ido/moves.h"
#include "ido/resume.h"
#include "ido/runtime.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// A function with sections, or parts of such.
struct Code {
    Function *function;
    uint64_t hash;
    Function *resume;
    GlobalVariable *regions;
};

std::optional<Code> make_code(Function &function, const locks::Held &held,
                              FunctionAnalysisManager &analyses, Omitted &omitted) {
    if (Inside(function, held).is_empty())
        return std::nullopt;
    IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    Value *thread =
        builder.CreateCall(runtime::declare(*function.getParent(), runtime::thread), {});
    move_locals(function, thread, analyses);
    analyses.invalidate(function, PreservedAnalyses::none());
    replace_moves(function, Inside(function, held), thread, analyses);
    analyses.invalidate(function, PreservedAnalyses::none());

    const Inside inside(function, held);
    const auto sites = make_sites(function, inside, held, analyses, omitted);
    GlobalVariable *regions = declare_regions(function, sites.size());
    instrument(function, sites, inside, thread, *regions);
    const uint64_t hash = hash_of(function);
    define_regions(*regions, sites, hash);
    Function *resume = sites.empty() ? nullptr : make_resume(function, sites, inside, thread);
    analyses.invalidate(function, PreservedAnalyses::none());
    if (!sites.empty())
        return Code{&function, hash, resume, regions};
    regions->eraseFromParent();
    return std::nullopt;
}

// The runtime finds functions by their hashes.
void register_functions(Module &module, ArrayRef<Code> codes) {
    if (codes.empty())
        return;
    LLVMContext &context = module.getContext();
    IRBuilder<> builder(context);
    auto string = [&](StringRef text) -> Constant * {
        auto *bytes = ConstantDataArray::getString(context, text);
        return new GlobalVariable(module, bytes->getType(), true, GlobalValue::PrivateLinkage,
                                  bytes, "__durum_ido_name");
    };
    // struct __durum_ido_function
    auto *type =
        StructType::get(context, {builder.getInt64Ty(), builder.getPtrTy(), builder.getPtrTy(),
                                  builder.getPtrTy(), builder.getPtrTy(), builder.getInt64Ty()});
    Constant *file = string(module.getSourceFileName());
    SmallVector<Constant *, 16> table;
    for (const Code &code : codes)
        table.push_back(ConstantStruct::get(
            type,
            {builder.getInt64(code.hash), string(code.function->getName()), file, code.resume,
             code.regions, builder.getInt64(code.regions->getValueType()->getArrayNumElements())}));
    auto *array = ArrayType::get(type, table.size());
    auto *functions = new GlobalVariable(module, array, false, GlobalValue::PrivateLinkage,
                                         ConstantArray::get(array, table), "__durum_ido_functions");
    auto *constructor = Function::Create(FunctionType::get(builder.getVoidTy(), false),
                                         GlobalValue::InternalLinkage, "__durum_ido_begin", module);
    builder.SetInsertPoint(BasicBlock::Create(context, "", constructor));
    builder.CreateCall(runtime::declare(module, runtime::register_functions),
                       {functions, builder.getInt64(table.size())});
    builder.CreateRetVoid();
    appendToGlobalCtors(module, constructor, 0);
}

} // namespace

void begin(Module &, ModuleAnalysisManager &) {}

void end(Module &module, ModuleAnalysisManager &analyses) {
    end_with(module, analyses, {});
}

std::optional<Omitted> end_named(StringRef name) {
    if (!name.consume_front("ido-end<") || !name.consume_back(">"))
        return std::nullopt;
    Omitted omitted;
    SmallVector<StringRef, 2> words;
    name.split(words, ';', -1, false);
    return all_of(words, [&](StringRef word) { return omitted.read(word); })
               ? std::optional(omitted)
               : std::nullopt;
}

void end_with(Module &module, ModuleAnalysisManager &analyses, Omitted omitted) {
    FunctionAnalysisManager &of_functions =
        analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    replace_lock_calls(module);
    const locks::Held held(module);
    SmallVector<Function *, 32> functions;
    for (Function &function : module)
        if (!function.isDeclaration() && can_be_split(function))
            functions.push_back(&function);
    SmallVector<Code, 16> codes;
    for (Function *function : functions)
        if (std::optional<Code> code = make_code(*function, held, of_functions, omitted))
            codes.push_back(*code);
    register_functions(module, codes);
    forget_effects(module, language);
    strip_lines(module);
    remove_mark(module, language);
}

} // namespace durumcc::ido
