// For each function that may be in a section where its regions begin, why, and with how many
// live-ins:
//
//   push: 3 regions
//     stack.c:9: 2 live-ins
//     stack.c:12: 1 live-in, would overwrite what stack.c:11 reads
#include "ido/print.h"

#include "ido/early_reads.h"
#include "ido/regions.h"
#include "ido/sections.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Support/Path.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

void print_place(const Instruction &instruction, raw_ostream &out) {
    // What the compiler has put there has no line.
    for (const Instruction *one = &instruction; one; one = one->getNextNode())
        if (const DILocation *location = one->getDebugLoc().get()) {
            out << sys::path::filename(location->getFilename()) << ":" << location->getLine();
            return;
        }
    out << "?";
}

void print(Function &function, ArrayRef<Cut> cuts, const Live &live, raw_ostream &out) {
    out << function.getName() << ": " << cuts.size()
        << (cuts.size() == 1 ? " region\n" : " regions\n");
    for (const Cut &cut : cuts) {
        const size_t values = live.at(*cut.place->getParent()).size();
        out << "  ";
        print_place(*cut.place, out);
        out << ": " << values << (values == 1 ? " live-in" : " live-ins");
        if (cut.conflict.is_overwrite()) {
            out << ", would overwrite what ";
            print_place(*cut.conflict.first, out);
            out << " reads";
        }
        out << "\n";
    }
}

} // namespace

void print(Module &module, ModuleAnalysisManager &analyses, raw_ostream &out) {
    FunctionAnalysisManager &of_functions =
        analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    const locks::Held held(module);
    Omitted nothing;
    for (Function &function : module) {
        const Inside inside(function, held);
        if (inside.is_empty())
            continue;
        read_early(function, inside, of_functions);
        const auto conflicts = conflicts_in(function, inside, of_functions, nothing);
        const auto cuts = cuts_for(conflicts, function, of_functions);
        if (!can_be_split(function)) {
            out << function.getName() << ": cannot be entered where regions begin\n";
            continue;
        }
        SmallVector<Instruction *, 16> places;
        for (const Cut &cut : cuts)
            places.push_back(cut.place);
        make_blocks(function, places);
        print(function, cuts, Live(function, Inside(function, held)), out);
    }
}

} // namespace durumcc::ido
