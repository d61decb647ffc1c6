// A function that stores to durable memory may be called from inside of a transaction, where it has
// to log, and from outside. If only one of them happens, as far as the module tells, it is known.
// Else the function asks once, when it is entered. In loops that cannot be announced as a whole the
// answer would be in the way of the optimizer, so a function with such loops becomes two; callers
// in the module that know where they are call the one they need, and others the function itself,
// which asks.
//
//   define void @f(...)            if (is inside) f.INSIDE(...) else f.OUTSIDE(...)
//   define internal @f.OUTSIDE(...)  as it was
//   define internal @f.INSIDE(...)   the same, as if it stood in a transaction
#include "versions.h"

#include "depths.h"
#include "loops.h"
#include "writes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace durumcc {
namespace {

using namespace llvm;

struct Versions {
    Function *outside;
    Function *inside;
};

// A call of a function that has a body here.
struct Call {
    Function *callee;
    // Levels that the caller has opened.
    Depth depth;
};

using Calls = DenseMap<Function *, SmallVector<Call, 4>>;

Calls calls_of(Module &module, const Levels &levels) {
    Calls calls;
    for (Function &function : module) {
        if (function.isDeclaration())
            continue;
        SmallVector<Call, 4> &own = calls[&function];
        const Depths depths(function, levels);
        depths.each(function, [&](Instruction &instruction, std::optional<Depth> depth) {
            const auto *call = dyn_cast<CallBase>(&instruction);
            Function *callee = call ? call->getCalledFunction() : nullptr;
            if (callee && !callee->isDeclaration())
                own.push_back({callee, depth.value_or(Depth{})});
        });
    }
    return calls;
}

// How a place is entered where the function has opened so many levels.
Entry entry_at(Entry entry, Depth depth) {
    return depth.is_inside() ? Entry::Inside : depth == Depth{} ? entry : Entry::Unknown;
}

// How functions are entered: those that others may call in any way, and those that only callers
// here call in theirs. Without an entry is what nobody calls.
DenseMap<Function *, Entry> entries_of(Module &module, const Levels &levels) {
    const Calls calls = calls_of(module, levels);
    DenseMap<Function *, Entry> entries;
    SmallVector<Function *, 32> to_do;
    auto enter = [&](Function *function, Entry entry) {
        auto [place, is_new] = entries.try_emplace(function, entry);
        if (!is_new && (place->second == entry || place->second == Entry::Unknown))
            return;
        if (!is_new)
            place->second = Entry::Unknown;
        to_do.push_back(function);
    };
    for (Function &function : module) {
        if (function.isDeclaration())
            continue;
        if ((function.getName() == "main" && function.use_empty()) ||
            function.hasFnAttribute(called_outside))
            // Nobody calls it from inside of a transaction.
            enter(&function, Entry::Outside);
        else if (!function.hasLocalLinkage() || function.hasAddressTaken())
            enter(&function, Entry::Unknown);
    }
    while (!to_do.empty()) {
        Function *caller = to_do.pop_back_val();
        Entry entry = entries[caller];
        for (const Call &call : calls.find(caller)->second)
            enter(call.callee, entry_at(entry, call.depth));
    }
    return entries;
}

// A struct that the caller has copied to the stack.
bool has_argument_in_memory(const Function &function) {
    return any_of(function.args(), [](const Argument &one) { return one.hasByValAttr(); });
}

// Code that may stand once only: assembly may define a symbol.
bool stands_once(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    return call && (call->isInlineAsm() || call->cannotDuplicate());
}

// A copy would jump into the original by addresses of labels in tables, and is of no use without
// optimization. What comes behind the named arguments can be handed on by musttail only (see
// dispatch).
bool can_be_copied(const Function &function) {
    return !function.hasOptNone() && !function.hasFnAttribute(Attribute::Naked) &&
           !(function.isVarArg() && has_argument_in_memory(function)) &&
           none_of(instructions(function), stands_once) &&
           none_of(function, [](const BasicBlock &block) { return block.hasAddressTaken(); });
}

// Moves what the function does to another one, and leaves it empty.
Function *move_out(Function &function, StringRef suffix) {
    Function *moved = Function::Create(function.getFunctionType(), GlobalValue::InternalLinkage,
                                       function.getAddressSpace(), function.getName() + suffix);
    function.getParent()->getFunctionList().insertAfter(function.getIterator(), moved);
    moved->copyAttributesFrom(&function);
    moved->setLinkage(GlobalValue::InternalLinkage);
    moved->setVisibility(GlobalValue::DefaultVisibility);
    moved->setDLLStorageClass(GlobalValue::DefaultStorageClass);
    moved->setDSOLocal(true);
    moved->setComdat(nullptr);
    moved->splice(moved->end(), &function);
    for (auto [from, to] : zip(function.args(), moved->args())) {
        from.replaceAllUsesWith(&to);
        to.takeName(&from);
    }
    // Lines belong to the code.
    moved->copyMetadata(&function, 0);
    function.clearMetadata();
    return moved;
}

void dispatch(Function &function, const Language &language, const Versions &versions) {
    LLVMContext &context = function.getContext();
    function.addFnAttr(dispatches);
    auto *entry = BasicBlock::Create(context, "", &function);
    auto *inside = BasicBlock::Create(context, "inside", &function);
    auto *outside = BasicBlock::Create(context, "outside", &function);
    IRBuilder<> builder(entry);
    builder.CreateCondBr(language.is_inside(builder), inside, outside);
    for (auto [block, version] :
         {std::pair(inside, versions.inside), std::pair(outside, versions.outside)}) {
        builder.SetInsertPoint(block);
        SmallVector<Value *, 8> arguments;
        for (Argument &argument : function.args())
            arguments.push_back(&argument);
        CallInst *call = builder.CreateCall(version, arguments);
        call->setCallingConv(function.getCallingConv());
        call->setAttributes(function.getAttributes().removeFnAttributes(context));
        // Also of a function with any number of arguments. For x86-64 LLVM 19 copies a struct on
        // its way to the same place over the address to return to; a plain call makes another copy.
        if (!has_argument_in_memory(function))
            call->setTailCallKind(CallInst::TCK_MustTail);
        if (call->getType()->isVoidTy())
            builder.CreateRetVoid();
        else
            builder.CreateRet(call);
    }
}

using Table = MapVector<Function *, Versions>;

// Calls in a function go to the version that they need.
void redirect(Function &function, const Levels &levels, Entry entry, const Table &table) {
    // What a version does to levels is not known, so which one is called is decided before any is.
    SmallVector<std::pair<CallBase *, Function *>, 8> decided;
    const Depths depths(function, levels);
    depths.each(function, [&](Instruction &instruction, std::optional<Depth> depth) {
        auto *call = dyn_cast<CallBase>(&instruction);
        Function *callee = call ? call->getCalledFunction() : nullptr;
        auto found = callee ? table.find(callee) : table.end();
        // Another definition may take the place of this one when the program is linked.
        if (found == table.end() || callee->isInterposable())
            return;
        switch (entry_at(entry, depth.value_or(Depth{}))) {
        case Entry::Inside:
            decided.emplace_back(call, found->second.inside);
            return;
        case Entry::Outside:
            decided.emplace_back(call, found->second.outside);
            return;
        case Entry::Unknown:
            return;
        }
    });
    for (auto [call, version] : decided)
        call->setCalledFunction(version);
}

// Versions that nobody calls, and functions that nobody calls otherwise.
void remove_unused(const Table &table, DenseMap<Function *, Entry> &entries) {
    bool has_changed = true;
    DenseSet<Function *> removed;
    auto remove = [&](Function *function) {
        if (removed.contains(function) || !function->hasLocalLinkage() || !function->use_empty())
            return;
        removed.insert(function);
        entries.erase(function);
        function->eraseFromParent();
        has_changed = true;
    };
    while (has_changed) {
        has_changed = false;
        for (const auto &[function, versions] : table) {
            remove(function);
            remove(versions.inside);
            remove(versions.outside);
        }
    }
}

} // namespace

bool asks_in_loops(Function &function, const Language &language, const TargetLibraryInfo &library) {
    SmallVector<Write, 16> depending;
    const Depths depths(function, language);
    depths.each(function, [&](Instruction &instruction, std::optional<Depth> depth) {
        if (depth == Depth{})
            if (std::optional<Write> write = write_of(instruction, language))
                depending.push_back(*write);
    });
    if (depending.empty())
        return false;
    Loops loops(function, library);
    return !loops.are_ranges(depending, Side::Before) || !loops.are_ranges(depending, Side::Behind);
}

DenseMap<Function *, Entry> make_versions(Module &module, const Language &language,
                                          const Levels &levels,
                                          function_ref<bool(Function &)> wants_two) {
    Table table;
    DenseMap<Function *, Entry> entries = entries_of(module, levels);
    for (Function &function : module)
        if (!function.isDeclaration() && entries.lookup(&function) == Entry::Unknown &&
            can_be_copied(function) && wants_two(function))
            table[&function] = {};
    for (auto &[function, versions] : table) {
        versions.outside = move_out(*function, language.suffix_outside());
        ValueToValueMapTy values;
        versions.inside = CloneFunction(versions.outside, values);
        versions.inside->setName(function->getName() + language.suffix_inside());
        versions.inside->removeFromParent();
        module.getFunctionList().insertAfter(versions.outside->getIterator(), versions.inside);
        dispatch(*function, language, versions);
        entries[versions.outside] = Entry::Outside;
        entries[versions.inside] = Entry::Inside;
    }
    for (auto [function, entry] : entries)
        if (!table.contains(function))
            redirect(*function, levels, entry, table);
    remove_unused(table, entries);
    return entries;
}

} // namespace durumcc
