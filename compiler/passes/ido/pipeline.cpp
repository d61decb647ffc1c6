#include "ido/pipeline.h"

#include "common/effects.h"
#include "common/mark.h"
#include "common/versions.h"
#include "ido/addresses.h"
#include "ido/allocations.h"
#include "ido/code.h"
#include "ido/counters.h"
#include "ido/early_reads.h"
#include "ido/elsewhere.h"
#include "ido/globals.h"
#include "ido/instrument.h"
#include "ido/language.h"
#include "ido/library.h"
#include "ido/locals.h"
#include "ido/lock_calls.h"
#include "ido/lock_names.h"
#include "ido/moves.h"
#include "ido/openers.h"
#include "ido/processor.h"
#include "ido/refused.h"
#include "ido/report.h"
#include "ido/resume.h"
#include "ido/runtime.h"
#include "ido/volatile_pointers.h"
#include "locks/changes.h"
#include "locks/outside.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// A flag of modules, which goes with intermediate code.
constexpr char compiled_flag[] = "durum-ido";

// A function with sections, or parts of such.
struct Code {
    Function *function;
    uint64_t hash;
    GlobalVariable *regions;
};

struct Prepared {
    Function *function;
    Value *thread;
};

// Locals move, and what sections may not do is refused. Nothing, if the function has no sections.
std::optional<Prepared> prepare(Function &function, const locks::Held &held,
                                FunctionAnalysisManager &analyses, Reported &reported) {
    if (store_answers(function, Inside(function, held)))
        analyses.invalidate(function, PreservedAnalyses::none());
    const Inside inside(function, held);
    if (inside.is_empty())
        return std::nullopt;
    IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    CallInst *thread =
        builder.CreateCall(runtime::declare(*function.getParent(), runtime::thread), {});
    if (!refuse(function, inside, thread, reported)) {
        if (thread->use_empty())
            thread->eraseFromParent();
        return std::nullopt;
    }
    move_locals(function, thread, analyses);
    return Prepared{&function, thread};
}

// What only reads its caller's memory has stores, too, where it has locals that last, and records.
bool writes(const Function &function) {
    return any_of(instructions(function),
                  [](const Instruction &one) { return one.mayWriteToMemory(); });
}

void forget_reading(Function &function) {
    function.removeFnAttr(Attribute::Memory);
    for (User *user : function.users())
        if (auto *call = dyn_cast<CallBase>(user); call && call->getCalledFunction() == &function)
            call->removeFnAttr(Attribute::Memory);
}

// Whoever declares that a function of another file only reads says nothing of its locals.
void forget_reading(Module &module, FunctionAnalysisManager &analyses) {
    for (Function &function : module) {
        LibFunc library;
        if (function.isDeclaration() && !function.isIntrinsic() &&
            !runtime::has(function.getName()) && function.onlyReadsMemory() &&
            !analyses.getResult<TargetLibraryAnalysis>(function).getLibFunc(function, library))
            forget_reading(function);
    }
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        for (Function &function : module)
            if (!function.isDeclaration() && function.onlyReadsMemory() && writes(function)) {
                forget_reading(function);
                has_changed = true;
            }
    }
}

std::optional<Code> make_code(const Prepared &prepared, const locks::Held &held,
                              FunctionAnalysisManager &analyses, Omitted &omitted,
                              Reported &reported) {
    auto [function, thread] = prepared;
    replace_moves(*function, Inside(*function, held), thread, analyses);
    analyses.invalidate(*function, PreservedAnalyses::none());

    const Inside inside(*function, held);
    ask_early(*function, std::next(cast<Instruction>(thread)->getIterator()));
    read_early(*function, inside, analyses);
    auto sites = make_sites(*function, inside, held, analyses, omitted);
    if (sites.empty()) {
        forget_locals(*function);
        return std::nullopt;
    }
    announce_stores(*function, inside, thread);
    ask_for_memory(*function, sites, inside, thread);
    add_live_ins(*function, sites, held);
    refuse_live_ins(sites, reported);
    if (options_of(*function->getParent()).reports)
        report_regions(*function, sites, Inside(*function, held));
    if (none_of(sites, [](const Site &site) { return site.needs_locals; }))
        forget_locals(*function);
    GlobalVariable *regions = declare_regions(*function, sites.size());
    AllocaInst *words = instrument(*function, sites, thread, *regions);
    const uint64_t hash = hash_of(*function);
    define_regions(*function, *regions, sites, hash);
    make_resumable(*function, sites, inside, thread, *regions, *words);
    return Code{function, hash, regions};
}

// A function without sites stores nothing, and is done again with the region of its caller. So what
// it reads has to last, too.
void check_reader(const Prepared &prepared, const locks::Held &held) {
    auto [function, thread] = prepared;
    const Inside inside(*function, held);
    if (!inside(function->getEntryBlock().front()))
        return;
    forget_reading(*function);
    ask_for_memory(*function, {}, inside, thread);
}

// The runtime finds functions by their hashes.
void register_functions(Module &module, ArrayRef<Code> codes) {
    if (codes.empty())
        return;
    LLVMContext &context = module.getContext();
    IRBuilder<> builder(context);
    // struct __durum_ido_function
    auto *type = StructType::get(
        context, {builder.getInt64Ty(), builder.getPtrTy(), builder.getPtrTy(), builder.getPtrTy(),
                  builder.getPtrTy(), builder.getPtrTy(), builder.getInt64Ty()});
    Constant *file = runtime::text(module, module.getSourceFileName());
    SmallVector<Constant *, 16> table;
    for (const Code &code : codes)
        table.push_back(ConstantStruct::get(
            type, {builder.getInt64(code.hash), runtime::text(module, name_of(*code.function)),
                   file, caller_of(*code.function), code.function, code.regions,
                   builder.getInt64(code.regions->getValueType()->getArrayNumElements())}));
    auto *array = ArrayType::get(type, table.size());
    auto *functions = new GlobalVariable(module, array, false, GlobalValue::PrivateLinkage,
                                         ConstantArray::get(array, table), "__durum_ido_functions");
    runtime::call_at_start(module, runtime::register_functions, *functions, table.size());
}

// A function with sections of its own takes locks, beside which it counts for nothing that other
// places ask whether they are in one, unless they do it again and again.
bool asks_seldom(Function &function, const locks::Held &held) {
    bool has_sections = false;
    bool asks_often = false;
    const auto often = blocks_in_loops(function);
    Depths(function, held).each(function, [&](Instruction &one, std::optional<Depth> depth) {
        const auto *call = dyn_cast<CallBase>(&one);
        const bool asks = call ? leads_to_code(*call) : one.mayWriteToMemory();
        has_sections |= depth && depth->may_be_inside();
        asks_often |= depth == Depth{} && asks && often.contains(one.getParent());
    });
    return has_sections && !asks_often;
}

// Outside of sections code is as fast as any, and inside nothing needs to be asked.
void make_two_versions(Module &module, const locks::Held &held) {
    auto wants_two = [&](Function &function) {
        const Depth entry = held.entry(function);
        return !entry.is_inside() && entry.may_be_inside() && !has_obstacle(function) &&
               writes(function) && !asks_seldom(function, held);
    };
    const DenseMap<Function *, Entry> entries = make_versions(module, language, held, wants_two);
    for (auto [function, entry] : entries)
        if (name_of(*function) != function->getName())
            function->addFnAttr(entry == Entry::Inside ? locks::entered_inside
                                                       : locks::entered_outside);
}

} // namespace

bool is_compiled(const Module &module) {
    return module.getModuleFlag(compiled_flag) != nullptr;
}

void begin(Module &module, ModuleAnalysisManager &) {
    type_allocations(module);
    if (options_of(module).durable_malloc)
        move_allocations(module);
    move_globals(module);
    keep_openers_apart(module);
}

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
    if (options_of(module).warns_of_volatile_pointers)
        warn_of_volatile_pointers(module);
    tell_readers(module, of_functions);
    replace_lock_calls(module);
    name_locks(module);
    locks::find_called_outside(module);
    if (options_of(module).outside)
        locks::call_all_outside(module);
    // Nothing that lasts is changed by what writes counts to files, also where a section exits.
    for (Function &function : module)
        if (counts(function))
            function.addFnAttr(called_outside);
    Reported reported;
    {
        // As the program has them.
        const locks::Held held(module);
        refuse_locks(module, held, reported);
        for (const Function *function : locks::tell_changes(module, held))
            refuse_declaration(*function);
        make_two_versions(module, held);
    }
    const locks::Held held(module);
    SmallVector<Prepared, 32> functions;
    for (Function &function : module)
        if (std::optional<Prepared> prepared = prepare(function, held, of_functions, reported))
            functions.push_back(*prepared);
    forget_reading(module, of_functions);
    for (const Prepared &prepared : functions)
        of_functions.invalidate(*prepared.function, PreservedAnalyses::none());
    SmallVector<Code, 16> codes;
    SmallVector<Prepared, 16> readers;
    for (const Prepared &prepared : functions) {
        if (std::optional<Code> code = make_code(prepared, held, of_functions, omitted, reported))
            codes.push_back(*code);
        else
            readers.push_back(prepared);
    }
    // When all callers know that they only read.
    for (const Prepared &reader : readers)
        check_reader(reader, held);
    define_asking(module);
    tell_callers(module);
    register_functions(module, codes);
    SmallVector<Function *, 16> with_code;
    for (const Code &code : codes)
        with_code.push_back(code.function);
    tell_addresses(module, with_code);
    tell_features(module);
    forget_effects(module, language);
    strip_lines(module);
    module.addModuleFlag(Module::Max, compiled_flag, 1);
    remove_mark(module, language);
}

} // namespace durumcc::ido
