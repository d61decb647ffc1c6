#include "ido/code.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// Writes the code down, with a number for each value that the function makes.
class Writer {
  public:
    Writer(const Function &function, raw_ostream &out) : function(function), out(out) {}

    void write() {
        out << function.getName() << " ";
        function.getFunctionType()->print(out);
        for (const Argument &argument : function.args())
            number(argument);
        for (const BasicBlock &block : function) {
            number(block);
            for (const Instruction &instruction : block)
                number(instruction);
        }
        for (const BasicBlock &block : function)
            for (const Instruction &instruction : block)
                if (!instruction.isDebugOrPseudoInst())
                    write(instruction);
    }

  private:
    void number(const Value &value) { numbers.insert({&value, numbers.size()}); }

    void write(const Instruction &instruction) {
        out << "\n" << instruction.getOpcodeName() << " ";
        instruction.getType()->print(out);
        // Whatever the instruction has beside its operands: what it may assume, and what it
        // compares.
        out << " " << instruction.getRawSubclassOptionalData();
        write_details(instruction);
        for (const Use &use : instruction.operands())
            write_operand(*use);
        if (const auto *phi = dyn_cast<PHINode>(&instruction))
            for (const BasicBlock *from : phi->blocks())
                write_operand(*from);
    }

    void write_details(const Instruction &instruction) {
        if (const auto *compare = dyn_cast<CmpInst>(&instruction))
            out << " " << CmpInst::getPredicateName(compare->getPredicate());
        if (const auto *load = dyn_cast<LoadInst>(&instruction))
            out << " align " << load->getAlign().value();
        if (const auto *store = dyn_cast<StoreInst>(&instruction))
            out << " align " << store->getAlign().value();
        if (const auto *place = dyn_cast<GetElementPtrInst>(&instruction)) {
            out << " ";
            place->getSourceElementType()->print(out);
        }
        if (const auto *call = dyn_cast<CallBase>(&instruction)) {
            out << " ";
            call->getFunctionType()->print(out);
        }
        auto write_indices = [&](ArrayRef<unsigned> indices) {
            for (unsigned index : indices)
                out << " [" << index << "]";
        };
        if (const auto *extract = dyn_cast<ExtractValueInst>(&instruction))
            write_indices(extract->getIndices());
        if (const auto *insert = dyn_cast<InsertValueInst>(&instruction))
            write_indices(insert->getIndices());
        if (const auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction))
            for (int lane : shuffle->getShuffleMask())
                out << " <" << lane << ">";
    }

    void write_operand(const Value &value) {
        if (auto found = numbers.find(&value); found != numbers.end()) {
            out << " %" << found->second;
            return;
        }
        // What only the compiler knows, as lines and types for alias analysis, has numbers of its
        // own in each module.
        if (isa<MetadataAsValue>(value))
            return;
        out << " ";
        write_constant(value);
    }

    void write_constant(const Value &value) {
        // What the runtime says of a place has its line.
        if (value.getName().starts_with("__durum_ido_place."))
            return;
        // Constants without a name are what they hold, whatever the module calls them.
        const auto *global = dyn_cast<GlobalVariable>(&value);
        if (!global || !global->hasLocalLinkage() || !global->isConstant() ||
            !global->hasInitializer())
            return value.printAsOperand(out, true, function.getParent());
        out << "constant ";
        if (is_open.insert(global).second)
            write_constant(*global->getInitializer());
        is_open.erase(global);
    }

    const Function &function;
    raw_ostream &out;
    DenseMap<const Value *, size_t> numbers;
    // A constant may lead to itself.
    SmallPtrSet<const GlobalVariable *, 4> is_open;
};

} // namespace

uint64_t hash_of(const Function &function) {
    std::string text;
    raw_string_ostream out(text);
    Writer(function, out).write();
    const uint64_t hash = xxh3_64bits(text) >> 16;
    return hash ? hash : 1;
}

} // namespace durumcc::ido
