// Where a place is in a section for certain, the module has an error. Where it may be, the program
// ends if it is:
//
//   call void @__durum_ido_refused(ptr %thread, ptr @"stack.c:9: an atomic access in a section...")
#include "ido/refused.h"

#include "common/locations.h"
#include "ido/counters.h"
#include "ido/language.h"
#include "ido/runtime.h"
#include "ido/sanitizers.h"
#include "locks/calls.h"
#include "locks/problems.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

constexpr uint64_t words_max = 128;

struct Words {
    const char *id;
    const char *text;
    const char *cure;
};
constexpr Words all_words[] = {
#define DURUMCC_REFUSAL(name, id, text, cure) {id, text, cure},
#include "ido/refusals.def"
};

std::string message_of(Refusal refusal, StringRef subject) {
    const Words &words = all_words[static_cast<int>(refusal)];
    std::string message = words.text;
    if (!subject.empty())
        message += (" (" + subject + ")").str();
    return message + ": " + words.cure + " [" + words.id + "]";
}

void report(const Instruction &place, Refusal refusal, StringRef subject = {}) {
    const Function &function = *place.getFunction();
    function.getContext().diagnose(
        DiagnosticInfoUnsupported(function, message_of(refusal, subject), place.getDebugLoc()));
}

// The variable that a pointer may lead to, or null.
const GlobalVariable *global_of(const Value *pointer) {
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    for (const Value *object : objects)
        if (const auto *global = dyn_cast<GlobalVariable>(object))
            if (!global->isConstant() && !is_sanitizers(*global) && !is_counter(global))
                return global;
    return nullptr;
}

SmallVector<const Value *, 2> pointers_of(const Instruction &instruction) {
    SmallVector<const Value *, 2> pointers;
    if (const Value *pointer = getLoadStorePointerOperand(&instruction))
        pointers.push_back(pointer);
    if (const auto *intrinsic = dyn_cast<AnyMemIntrinsic>(&instruction)) {
        pointers.push_back(intrinsic->getRawDest());
        if (const auto *transfer = dyn_cast<AnyMemTransferInst>(&instruction))
            pointers.push_back(transfer->getRawSource());
    }
    return pointers;
}

// What the message is about, beside the place.
StringRef subject_of(const Instruction &instruction, Refusal refusal) {
    if (refusal == Refusal::Global)
        for (const Value *pointer : pointers_of(instruction))
            if (const GlobalVariable *global = global_of(pointer))
                return global->getName();
    return {};
}

bool is_thread_local(const Value *pointer) {
    const auto *global = dyn_cast<GlobalVariable>(getUnderlyingObject(pointer));
    return global && global->isThreadLocal();
}

// What std::mutex and its guards do where a program makes a mistake: it is in each of them, and
// seldom happens.
bool throws_for_library(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee && callee->isDeclaration() && callee->getName().starts_with("_ZSt") &&
           callee->getName().contains("__throw_");
}

// An instruction of the processor that has a name, not a meaning.
bool stores_by_target(const CallBase &call) {
    auto is_pointer = [](const Use &argument) { return argument->getType()->isPointerTy(); };
    return Function::isTargetIntrinsic(call.getIntrinsicID()) && call.mayWriteToMemory() &&
           any_of(call.args(), is_pointer);
}

std::optional<Refusal> refusal_of_call(const CallBase &call) {
    if (call.isInlineAsm()) {
        const auto &assembly = cast<InlineAsm>(*call.getCalledOperand());
        if (assembly.hasSideEffects() || !call.doesNotAccessMemory())
            return Refusal::Assembly;
        return std::nullopt;
    }
    switch (call.getIntrinsicID()) {
    case Intrinsic::threadlocal_address:
        return Refusal::ThreadLocal;
    case Intrinsic::frameaddress:
    case Intrinsic::returnaddress:
    case Intrinsic::addressofreturnaddress:
    case Intrinsic::sponentry:
    case Intrinsic::read_register:
    case Intrinsic::write_register:
        return Refusal::Address;
    case Intrinsic::masked_scatter:
    case Intrinsic::masked_compressstore:
        return Refusal::Vector;
    default:
        break;
    }
    if (stores_by_target(call))
        return Refusal::Vector;
    const Function *callee = call.getCalledFunction();
    if (!callee || !callee->isDeclaration())
        return std::nullopt;
    if (throws_for_library(call))
        return Refusal::Exception;
    return StringSwitch<std::optional<Refusal>>(callee->getName())
        .Case("__errno_location", Refusal::ThreadLocal)
        .Cases("longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", Refusal::Jump)
        .Cases("pthread_exit", "thrd_exit", "pthread_testcancel", "fork", "vfork", Refusal::Process)
        .Cases("vsnprintf", "vsprintf", "__vsnprintf_chk", "__vsprintf_chk", Refusal::Arguments)
        .Cases("execv", "execve", "execvp", "execl", "execlp", "execle", Refusal::Process)
        .Cases("__cxa_begin_catch", "__cxa_throw", "__cxa_rethrow", Refusal::Exception)
        .Default(std::nullopt);
}

std::optional<Refusal> refusal_of(const Instruction &instruction) {
    if (instruction.isVolatile())
        return Refusal::Volatile;
    // Nobody could tell after a crash whether it was done.
    if (isa<AtomicRMWInst, AtomicCmpXchgInst>(instruction))
        return Refusal::Atomic;
    if (const auto *call = dyn_cast<CallBase>(&instruction))
        if (std::optional<Refusal> refusal = refusal_of_call(*call))
            return refusal;
    // What goes on in the caller cannot be resumed.
    if (isa<ResumeInst>(instruction))
        return Refusal::Exception;
    const auto pointers = pointers_of(instruction);
    for (const Value *pointer : pointers)
        if (is_thread_local(pointer))
            return Refusal::ThreadLocal;
    if (any_of(pointers, global_of))
        return Refusal::Global;
    return std::nullopt;
}

// Why the function cannot be entered somewhere in the middle.
std::optional<std::pair<const Instruction *, Refusal>> obstacle_in(const Function &function) {
    for (const Instruction &instruction : instructions(function)) {
        const auto *call = dyn_cast<CallBase>(&instruction);
        if (call && call->hasFnAttr(Attribute::ReturnsTwice))
            return std::pair(&instruction, Refusal::Jump);
        // Nothing may stand behind it, where its frame is taken off.
        if (call && call->isMustTailCall())
            return std::pair(&instruction, Refusal::TailCall);
        const auto *local = dyn_cast<AllocaInst>(&instruction);
        if (local && !local->isStaticAlloca())
            return std::pair(&instruction, Refusal::Array);
        // They lie on a stack that does not last.
        if (isa<VAStartInst>(instruction))
            return std::pair(&instruction, Refusal::Arguments);
    }
    if (!can_be_split(function))
        return std::pair(&function.getEntryBlock().front(), Refusal::Goto);
    return std::nullopt;
}

class Refuser {
  public:
    Refuser(Function &function, const Inside &inside, Value *thread, Reported &reported)
        : module(*function.getParent()), function(function), inside(inside), thread(thread),
          reported(reported) {}

    void refuse_places() {
        SmallVector<std::pair<Instruction *, Refusal>, 8> doubtful;
        for (Instruction &instruction : instructions(function)) {
            std::optional<Refusal> refusal;
            if (inside(instruction))
                refusal = refusal_of(instruction);
            if (!refusal)
                continue;
            if (!inside.is_certain(instruction) || throws_for_library(instruction))
                doubtful.push_back({&instruction, *refusal});
            else if (reported.add(instruction, *refusal))
                report(instruction, *refusal, subject_of(instruction, *refusal));
        }
        for (auto [instruction, refusal] : doubtful)
            end_if_inside(*instruction, *instruction, refusal);
    }

    // The place is the program's, and tells the line; the check is put in front of the other one.
    void end_if_inside(const Instruction &place, Instruction &before, Refusal refusal) {
        IRBuilder<> builder(&before);
        builder.CreateCall(runtime::declare(module, runtime::refused),
                           {thread, place_of(place, refusal, subject_of(place, refusal))});
    }

    // Who is called has to be compiled for it. Of another file the linker knows, if the call is in
    // a section for certain; else the run does.
    void check_calls() {
        SmallVector<CallBase *, 8> calls;
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (inside(*call) && !locks::action_of(*call) && leads_to_code(*call))
                    calls.push_back(call);
        for (CallBase *call : calls) {
            const Function *callee = call->getCalledFunction();
            if (!callee)
                check_pointer(*call);
            else if (callee->isDeclaration())
                check_other_file(*call, callee->getName());
        }
    }

  private:
    void check_other_file(CallBase &call, StringRef callee) {
        IRBuilder<> builder(&call);
        auto *symbol = cast<GlobalVariable>(
            module.getOrInsertGlobal((runtime::sections_of + callee).str(), builder.getInt8Ty()));
        if (!inside.is_certain(call) && symbol->use_empty())
            symbol->setLinkage(GlobalValue::ExternalWeakLinkage);
        if (inside.is_certain(call))
            symbol->setLinkage(GlobalValue::ExternalLinkage);
        builder.CreateCall(runtime::declare(module, runtime::check_call),
                           {thread, symbol, place_of(call, Refusal::Call, callee)});
    }

    void check_pointer(CallBase &call) {
        IRBuilder<> builder(&call);
        builder.CreateCall(runtime::declare(module, runtime::check_pointer),
                           {thread, call.getCalledOperand(), place_of(call, Refusal::Pointer, {})});
    }

    Module &module;
    Function &function;
    const Inside &inside;
    Value *thread;
    Reported &reported;
};

bool takes_locks(const Function &function) {
    return any_of(instructions(function), [](const Instruction &instruction) {
        return locks::action_of(instruction).has_value();
    });
}

Refusal refusal_of(locks::Kind kind) {
    switch (kind) {
    case locks::Kind::Release:
        return Refusal::Release;
    case locks::Kind::Wait:
        return Refusal::Wait;
    case locks::Kind::WaitWithout:
        return Refusal::WaitWithout;
    }
    llvm_unreachable("all kinds are there");
}

} // namespace

void refuse(Module &module, Refusal refusal) {
    module.getContext().emitError(message_of(refusal, {}));
}

Constant *place_of(const Instruction &instruction, Refusal refusal, StringRef subject) {
    const Function &function = *instruction.getFunction();
    Module &module = *const_cast<Module *>(function.getParent());
    LLVMContext &context = module.getContext();
    Type *pointer = PointerType::get(context, 0);
    Type *number = Type::getInt64Ty(context);
    auto *type = StructType::get(context, {pointer, pointer, pointer, pointer, number});
    const DILocation *location = instruction.getDebugLoc().get();
    const unsigned line = location ? location->getLine() : 0;
    const std::string file = location ? file_name(*location->getFile()) : "";
    const char *id = all_words[static_cast<int>(refusal)].id;
    Constant *none = ConstantPointerNull::get(PointerType::get(context, 0));
    Constant *place = ConstantStruct::get(
        type, {runtime::text(module, message_of(refusal, {})),
               subject.empty() ? none : runtime::text(module, subject),
               runtime::text(module, name_of(function)),
               file.empty() ? none : runtime::text(module, file), ConstantInt::get(number, line)});
    return runtime::constant(module,
                             "__durum_ido_place." + name_of(function) + "." + file + "." +
                                 Twine(line) + "." + id + "." + subject,
                             place);
}

bool Reported::add(const Instruction &place, Refusal refusal) {
    const DILocation *location = place.getDebugLoc().get();
    return !location ||
           lines.insert({file_name(*location->getFile()), location->getLine(), refusal}).second;
}

bool has_obstacle(const Function &function) {
    return obstacle_in(function).has_value();
}

void refuse_locks(const Module &module, const locks::Held &held, Reported &reported) {
    for (const Function &function : module) {
        if (function.isDeclaration())
            continue;
        for (const locks::Problem &problem : locks::problems_in(function, held))
            if (reported.add(*problem.call, refusal_of(problem.kind)))
                report(*problem.call, refusal_of(problem.kind));
    }
}

void refuse_declaration(const Function &function) {
    for (const Instruction &instruction : instructions(function))
        if (isa<ReturnInst>(instruction))
            return report(instruction, Refusal::Declaration, name_of(function));
}

bool refuse(Function &function, const Inside &inside, Value *thread, Reported &reported) {
    Refuser refuser(function, inside, thread, reported);
    if (auto obstacle = obstacle_in(function)) {
        auto [place, refusal] = *obstacle;
        Instruction &entry = *cast<Instruction>(thread)->getNextNode();
        if (takes_locks(function) || inside.is_certain(entry))
            report(*place, refusal);
        else
            refuser.end_if_inside(*place, entry, refusal);
        return false;
    }
    refuser.refuse_places();
    refuser.check_calls();
    return true;
}

void tell_callers(Module &module) {
    for (Function &function : module) {
        if (function.isDeclarationForLinker() || function.hasFnAttribute(called_outside))
            continue;
        // -fsanitize=function has words there as well: a call by a pointer to a function without
        // them is not checked by it.
        function.setMetadata(LLVMContext::MD_func_sanitize, nullptr);
        if (function.hasAddressTaken() || !function.hasLocalLinkage())
            function.setPrefixData(
                ConstantInt::get(Type::getInt64Ty(module.getContext()), runtime::in_front_of_code));
        if (function.hasLocalLinkage())
            continue;
        const std::string name = (runtime::sections_of + function.getName()).str();
        auto *alias = GlobalAlias::create(Type::getInt8Ty(module.getContext()), 0,
                                          function.getLinkage(), name, &function, &module);
        alias->setVisibility(function.getVisibility());
    }
}

void refuse_calls(const Function &function, Refusal refusal) {
    for (const User *user : function.users())
        if (const auto *call = dyn_cast<CallBase>(user))
            report(*call, refusal);
}

void refuse_address(const GlobalVariable &variable) {
    variable.getContext().emitError(message_of(Refusal::Initializer, variable.getName()));
}

void refuse_live_ins(ArrayRef<Site> sites, Reported &reported) {
    for (const Site &site : sites) {
        uint64_t bytes = 0;
        for (uint64_t size : site.sizes)
            bytes += size;
        if (bytes > 8 * words_max && reported.add(*site.place, Refusal::Words))
            report(*site.place, Refusal::Words);
    }
}

} // namespace durumcc::ido
