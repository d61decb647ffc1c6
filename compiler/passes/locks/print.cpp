// For each function how many locks are held where it begins, and by how many more where it ends;
// then each call that changes that, with how many are held in front of it, counted from the begin:
//
//   push: 0..many, returns 0
//     stack.c:9: 0: pthread_mutex_lock @lock
//     stack.c:12: 1: pthread_mutex_unlock @lock
#include "locks/print.h"

#include "locks/calls.h"
#include "locks/outside.h"
#include "locks/problems.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Support/Path.h"

namespace durumcc::locks {
namespace {

using namespace llvm;

class Printer {
  public:
    Printer(const Module &module, raw_ostream &out) : held(module), out(out) {}

    void print(const Function &function) {
        const Summary &summary = held.summary(function);
        out << function.getName() << ": ";
        print(held.entry(function));
        if (summary.returns)
            print(", returns ", *summary.returns);
        if (summary.unwinds)
            print(", unwinds ", *summary.unwinds);
        if (summary.lowest < 0)
            print(", lowest ", Depth{summary.lowest, summary.lowest});
        out << "\n";
        const Depths depths(function, held);
        depths.each(function, [&](const Instruction &instruction, std::optional<Depth> depth) {
            if (const auto *call = dyn_cast<CallBase>(&instruction))
                if (depth)
                    print(*call, *depth);
        });
        for (const Problem &problem : problems_in(function, held)) {
            print_place(*problem.call);
            out << "problem: " << text_of(problem.kind) << "\n";
        }
    }

  private:
    void print(const CallBase &call, Depth depth) {
        const GlobalValue *called = called_by(call);
        const Function *callee = callee_of(call);
        if (!callee)
            return;
        const bool is_ours = action_of(call).has_value();
        if (!is_ours && (callee->isDeclaration() || !changes(held.summary(*callee))))
            return;
        print_place(call);
        print(depth);
        out << ": " << called->getName();
        if (const Value *lock = is_ours ? lock_of(call) : nullptr) {
            out << " ";
            lock->printAsOperand(out, false);
        }
        out << "\n";
    }

    static bool changes(const Summary &summary) {
        return summary.lowest < 0 || summary.returns.value_or(Depth{}) != Depth{} ||
               summary.unwinds.value_or(Depth{}) != Depth{};
    }

    static StringRef text_of(Kind kind) {
        switch (kind) {
        case Kind::Release:
            return "no lock is held that could be let go";
        case Kind::Wait:
            return "waits while it holds another lock";
        case Kind::WaitWithout:
            return "waits with a lock that it does not hold";
        }
        llvm_unreachable("all kinds are there");
    }

    void print_place(const CallBase &call) {
        out << "  ";
        if (const DILocation *location = call.getDebugLoc().get())
            out << sys::path::filename(location->getFilename()) << ":" << location->getLine()
                << ": ";
    }

    void print(StringRef what, Depth depth) {
        out << what;
        print(depth);
    }

    void print(Depth depth) {
        print(depth.min);
        if (depth.min == depth.max)
            return;
        out << "..";
        print(depth.max);
    }

    void print(int bound) {
        if (bound <= -Depth::many)
            out << "-many";
        else if (bound >= Depth::many)
            out << "many";
        else
            out << bound;
    }

    const Held held;
    raw_ostream &out;
};

} // namespace

void print(Module &module, raw_ostream &out) {
    find_called_outside(module);
    Printer printer(module, out);
    for (const Function &function : module)
        if (!function.isDeclaration())
            printer.print(function);
}

} // namespace durumcc::locks
