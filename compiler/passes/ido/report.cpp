// A line for each function, and one for each place where a record may be made:
//
//   stack.c: push: 1 section; records before 2 stores, 1 release, 0 calls
//   stack.c:12: push: 2 words of live-ins, 3 stores: it overwrites what stack.c:11 reads
//   stack.c:30: copy: memory of no type: its size is no sizeof of 'struct node'
//
// Stores are those that a region may make, each counted once, also in a loop.
#include "ido/report.h"

#include "common/locations.h"
#include "ido/language.h"
#include "ido/resume.h"
#include "ido/writers.h"
#include "locks/calls.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/raw_ostream.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

// What the compiler has put there has no line: that of what comes next.
std::string place_of(const Instruction &instruction) {
    for (const Instruction *one = &instruction; one; one = one->getNextNode())
        if (const DILocation *location = one->getDebugLoc().get())
            return file_name(*location->getFile()) + ":" + std::to_string(location->getLine());
    return instruction.getModule()->getSourceFileName();
}

std::string counted(uint64_t number, StringRef what) {
    return (Twine(number) + " " + what + (number == 1 ? "" : "s")).str();
}

// As one write, so that compilers that run beside each other do not mix their lines.
void print(const Twine &line) {
    errs() << (line + "\n").str();
}

// Of the region that begins at the head: up to where others begin, or the section ends.
uint64_t stores_of(const Site &site, const SmallPtrSetImpl<BasicBlock *> &heads,
                   const Inside &inside) {
    SmallSetVector<BasicBlock *, 16> blocks;
    blocks.insert(site.head);
    uint64_t stores = 0;
    for (unsigned i = 0; i < blocks.size(); i++) {
        for (Instruction &instruction : *blocks[i])
            stores += inside(instruction) && is_writer(instruction);
        for (BasicBlock *next : successors(blocks[i]))
            if (!heads.contains(next) && inside(next->front()))
                blocks.insert(next);
    }
    return stores;
}

std::string reason_of(const Site &site) {
    switch (site.kind) {
    case Site::Release:
        return "a lock is let go, and others may be held";
    case Site::Call:
        return "a call, where the last record was made in another one";
    case Site::Return:
        return "a call returns";
    case Site::Word:
        return site.reason + "; it is one word, which needs no record if that is all";
    case Site::Store:
        break;
    }
    return site.reason;
}

// By a lock that is taken, or by a call that comes back with one.
uint64_t sections_in(Function &function, ArrayRef<Site> sites, const Inside &inside) {
    uint64_t begins = count_if(sites, [&](const Site &site) {
        return site.begins_section && !inside.depth(*site.place).is_inside();
    });
    for (Instruction &instruction : instructions(function)) {
        const auto action = locks::action_of(instruction);
        const bool takes =
            action && (*action == locks::Action::Take || *action == locks::Action::Try ||
                       *action == locks::Action::TakeAll || *action == locks::Action::Begin);
        begins += takes && !inside.depth(instruction).is_inside();
    }
    return begins;
}

} // namespace

std::string reason_in_report(const Conflict &conflict) {
    if (!conflict.first)
        return "the first store of a section";
    const std::string place = place_of(*conflict.first);
    return conflict.is_overwrite() ? "it overwrites what " + place + " reads"
                                   : "it follows what " + place + " does once";
}

void report_untyped(const CallBase &call, StringRef reason) {
    print(place_of(call) + ": " + name_of(*call.getFunction()) + ": memory of no type: " + reason);
}

void report_regions(Function &function, ArrayRef<Site> sites, const Inside &inside) {
    SmallPtrSet<BasicBlock *, 16> heads;
    for (const Site &site : sites)
        heads.insert(site.head);
    uint64_t counts[Site::Return + 1] = {};
    for (const Site &site : sites)
        counts[site.kind]++;
    print(function.getParent()->getSourceFileName() + ": " + name_of(function) + ": " +
          counted(sections_in(function, sites, inside), "section") + "; records before " +
          counted(counts[Site::Store] + counts[Site::Word], "store") + ", " +
          counted(counts[Site::Release], "release") + ", " + counted(counts[Site::Call], "call"));
    for (const Site &site : sites) {
        uint64_t words = 0;
        for (uint64_t size : site.sizes)
            words += size / 8;
        const Instruction &place = site.kind == Site::Return ? *site.place : site.head->front();
        print(place_of(place) + ": " + name_of(function) + ": " + counted(words, "word") +
              " of live-ins, " + counted(stores_of(site, heads, inside), "store") + ": " +
              reason_of(site));
    }
}

} // namespace durumcc::ido
