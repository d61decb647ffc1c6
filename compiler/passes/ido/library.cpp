//   clock_gettime(kind, &now);                clock_gettime(kind, &answer);
//                                             now = answer;
#include "ido/library.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BuildLibCalls.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

constexpr unsigned None = ~0U;

enum class Size { Bytes, Argument, Text, String };

struct Fills {
    unsigned place;
    Size size;
    unsigned number;
};

struct Asks {
    unsigned place;
    unsigned size;
};

const Fills *fills_named(StringRef name) {
    static const StringMap<Fills> all = {
#define DURUMCC_FILLS(name, place, size, number) {name, {place, Size::size, number}},
#define DURUMCC_ASKS(name, place, size)
#define DURUMCC_TABLE(name)
#include "ido/library.def"
    };
    const auto found = all.find(name);
    return found == all.end() ? nullptr : &found->second;
}

const Asks *asks_named(StringRef name) {
    static const StringMap<Asks> all = {
#define DURUMCC_FILLS(name, place, size, number)
#define DURUMCC_ASKS(name, place, size) {name, {place, size}},
#define DURUMCC_TABLE(name)
#include "ido/library.def"
    };
    const auto found = all.find(name);
    return found == all.end() ? nullptr : &found->second;
}

// A call of a function that the module does not define.
const CallInst *call_of_other(const Instruction &instruction) {
    const auto *call = dyn_cast<CallInst>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    const bool is_other = callee && callee->isDeclaration() && !callee->isIntrinsic();
    return is_other && !call->isMustTailCall() ? call : nullptr;
}

bool has_pointer(const CallBase &call, unsigned place) {
    return place < call.arg_size() && call.getArgOperand(place)->getType()->isPointerTy();
}

bool has_number(const CallBase &call, unsigned place) {
    return place == None ||
           (place < call.arg_size() && call.getArgOperand(place)->getType()->isIntegerTy());
}

// `%n` writes to where an argument leads.
bool writes_to_arguments(StringRef format) {
    while (format.contains('%')) {
        format = format.split('%').second;
        format = format.drop_while(
            [](char c) { return StringRef("-+ #0123456789.*'IhlLqjzt$").contains(c); });
        // The bits of C23: %w32n, %wf32n.
        if (format.consume_front("wf") || format.consume_front("w"))
            format = format.drop_while(isDigit);
        if (format.consume_front("n"))
            return true;
        format = format.drop_front(format.empty() ? 0 : 1);
    }
    return false;
}

// What a format says is known if it is a constant.
bool has_good_format(const CallBase &call) {
    if (!call.getFunctionType()->isVarArg())
        return true;
    StringRef format;
    const Value *last = call.getArgOperand(call.getFunctionType()->getNumParams() - 1);
    return getConstantStringInfo(last, format) && !writes_to_arguments(format);
}

// Null, if it is another function of that name.
const Fills *fills_of(const CallBase &call) {
    const Fills *fills = fills_named(call.getCalledFunction()->getName());
    if (!fills || !has_pointer(call, fills->place))
        return nullptr;
    const bool counts = fills->size == Size::Argument || fills->size == Size::Text;
    if (counts && !has_number(call, fills->number))
        return nullptr;
    if (fills->size == Size::Text && !call.getType()->isIntegerTy())
        return nullptr;
    return has_good_format(call) ? fills : nullptr;
}

const Asks *asks_of(const CallBase &call) {
    const Asks *asks = asks_named(call.getCalledFunction()->getName());
    if (!asks || (asks->place != None && !has_pointer(call, asks->place)))
        return nullptr;
    const bool tells_no_more = all_of(call.args(), [&](const Use &argument) {
        return !argument->getType()->isPointerTy() || isa<ConstantPointerNull>(argument) ||
               call.getArgOperandNo(&argument) == asks->place;
    });
    return tells_no_more ? asks : nullptr;
}

Value *length_of(Value &string, IRBuilderBase &builder) {
    Module &module = *builder.GetInsertBlock()->getModule();
    FunctionCallee strlen =
        module.getOrInsertFunction("strlen", builder.getInt64Ty(), builder.getPtrTy());
    auto *function = dyn_cast<Function>(strlen.getCallee());
    if (function && function->isDeclaration()) {
        function->setOnlyReadsMemory();
        function->setOnlyAccessesArgMemory();
        function->setDoesNotThrow();
        function->setWillReturn();
    }
    return builder.CreateCall(strlen, &string);
}

bool is_table(StringRef name) {
    static const StringSet<> all = {
#define DURUMCC_FILLS(name, place, size, number)
#define DURUMCC_ASKS(name, place, size)
#define DURUMCC_TABLE(name) name,
#include "ido/library.def"
    };
    return all.contains(name);
}

void store_answer(CallInst &call, const Asks &asks) {
    Value *place = call.getArgOperand(asks.place);
    if (isa<ConstantPointerNull>(place))
        return;
    IRBuilder<> builder(&call.getFunction()->getEntryBlock().front());
    Type *type = builder.getIntNTy(8 * asks.size);
    Value *answer = builder.CreateAlloca(type);
    builder.SetInsertPoint(call.getNextNode());
    Value *value = builder.CreateAlignedLoad(type, answer, Align(8));
    // Where nobody wants it, it stays where it is.
    if (!isKnownNonZero(place, call.getDataLayout()))
        place = builder.CreateSelect(builder.CreateIsNotNull(place), place, answer);
    builder.CreateAlignedStore(value, place, Align(1));
    call.setArgOperand(asks.place, answer);
}

} // namespace

bool is_determined(const Instruction &instruction) {
    const CallInst *call = call_of_other(instruction);
    return call && fills_of(*call);
}

bool is_asked(const Instruction &instruction) {
    const CallInst *call = call_of_other(instruction);
    return call && asks_of(*call);
}

Use *place_filled(Instruction &instruction) {
    const CallInst *call = call_of_other(instruction);
    const Fills *fills = call ? fills_of(*call) : nullptr;
    if (!fills)
        return nullptr;
    Use &place = cast<CallInst>(instruction).getArgOperandUse(fills->place);
    return isa<ConstantPointerNull>(place) ? nullptr : &place;
}

MemoryLocation filled_by(const CallBase &call) {
    const Fills &fills = *fills_of(call);
    const Value *place = call.getArgOperand(fills.place);
    if (fills.size == Size::Bytes)
        return MemoryLocation(place, LocationSize::upperBound(fills.number));
    if (fills.number != None)
        if (const auto *room = dyn_cast<ConstantInt>(call.getArgOperand(fills.number)))
            return MemoryLocation(place, LocationSize::upperBound(room->getZExtValue()));
    return MemoryLocation::getAfter(place);
}

Value *size_filled(CallBase &call, IRBuilderBase &builder) {
    const Fills &fills = *fills_of(call);
    Type *word = builder.getInt64Ty();
    if (fills.size == Size::Bytes)
        return builder.getInt64(fills.number);
    if (fills.size == Size::String)
        return builder.CreateAdd(length_of(*call.getArgOperand(fills.place), builder),
                                 builder.getInt64(1));
    Value *room = fills.number == None
                      ? nullptr
                      : builder.CreateZExtOrTrunc(call.getArgOperand(fills.number), word);
    if (fills.size == Size::Argument)
        return room;
    // An error is a negative number: then it may be all of the room.
    Value *made = builder.CreateAdd(builder.CreateZExtOrTrunc(&call, word), builder.getInt64(1));
    return room ? builder.CreateBinaryIntrinsic(Intrinsic::umin, made, room) : made;
}

SmallVector<Value *, 2> read_by(const CallBase &call) {
    SmallVector<Value *, 2> pointers;
    if (call.doesNotAccessMemory() || (isa<IntrinsicInst>(call) && !call.onlyReadsMemory()))
        return pointers;
    const Use *filled = place_filled(const_cast<CallBase &>(call));
    for (const Use &argument : call.args())
        if (argument->getType()->isPtrOrPtrVectorTy() && !isa<ConstantPointerNull>(argument) &&
            &argument != filled)
            pointers.push_back(argument);
    return pointers;
}

void tell_readers(Module &module, FunctionAnalysisManager &analyses) {
    for (Function &function : module) {
        if (!function.isDeclaration() || function.isIntrinsic())
            continue;
        if (is_table(function.getName()) && function.getReturnType()->isIntegerTy()) {
            function.setDoesNotAccessMemory();
            function.setDoesNotThrow();
            function.setWillReturn();
        } else {
            inferNonMandatoryLibFuncAttrs(function,
                                          analyses.getResult<TargetLibraryAnalysis>(function));
        }
    }
}

bool store_answers(Function &function, const Inside &inside) {
    SmallVector<std::pair<CallInst *, const Asks *>, 4> asking;
    for (Instruction &instruction : instructions(function)) {
        const CallInst *call = inside(instruction) ? call_of_other(instruction) : nullptr;
        const Asks *asks = call ? asks_of(*call) : nullptr;
        if (asks && asks->place != None)
            asking.push_back({cast<CallInst>(&instruction), asks});
    }
    for (auto [call, asks] : asking)
        store_answer(*call, *asks);
    return !asking.empty();
}

} // namespace durumcc::ido
