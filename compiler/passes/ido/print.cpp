// For each function that may be in a section where its regions begin, why, and with how many
// live-ins:
//
//   push: 3 regions
//     stack.c:9: 2 live-ins
//     stack.c:12: 1 live-in, would overwrite what stack.c:11 reads
#include "ido/print.h"

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

void print(Function &function, const Regions &found, raw_ostream &out) {
    const Live live(function);
    out << function.getName() << ": " << found.regions.size()
        << (found.regions.size() == 1 ? " region\n" : " regions\n");
    for (const Region &region : found.regions) {
        const size_t values = live.at(*region.head).size();
        out << "  ";
        print_place(region.head->front(), out);
        out << ": " << values << (values == 1 ? " live-in" : " live-ins");
        if (region.overwrite) {
            out << ", would overwrite what ";
            print_place(*region.overwrite->reader, out);
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
    for (Function &function : module) {
        const Inside inside(function, held);
        if (inside.is_empty())
            continue;
        const auto overwrites = overwrites_in(function, inside, of_functions);
        print(function, split(function, inside, overwrites, of_functions), out);
    }
}

} // namespace durumcc::ido
