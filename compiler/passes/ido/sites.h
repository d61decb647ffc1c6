// Where the code of a function comes to an end that a crash can make it begin again from.
#pragma once

#include "ido/regions.h"
#include "ido/sections.h"

#include <string>

namespace durumcc::ido {

struct Site {
    enum Kind {
        // In front of a store, or of a loop with stores: a record.
        Store,
        // In front of the only store of an aligned word, behind which the lock is let go: if it is
        // all
        // that the section stores, it needs no record, as it is done or not.
        Word,
        // In front of a release that may leave other locks: a record without that lock.
        Release,
        // In front of a call of what may have sections or stores: a record, where the last one was
        // made deeper on the stack, whose frames the call is about to overwrite.
        Call,
        // Behind that call: a frame on the stack, which tells how the section goes on.
        Return,
    };

    Kind kind;
    // The first of the region, or the call itself for `Return`.
    llvm::Instruction *place;
    // On every way here a lock is held.
    bool is_inside;
    // Why there is a record in front of a store (-fdurable-report).
    std::string reason = {};
    // It needs locals of the function.
    bool needs_locals = false;
    // A call that may come back with more locks, and so begin a section that goes on behind it.
    bool begins_section = false;
    // The region's, when blocks have been made.
    llvm::BasicBlock *head = nullptr;
    // What it needs, in the order of its words, without the result of the call. Those of a call
    // begin with those of its return.
    llvm::SmallVector<llvm::Value *, 8> live_ins = {};
    // Bytes of each, in words.
    llvm::SmallVector<uint64_t, 8> sizes = {};
    // What only code behind the section's end uses, where nobody comes who has entered here.
    llvm::SmallVector<llvm::Value *, 8> not_needed = {};
};

// Whether a call leads to code that may have sections or stores of its own.
bool leads_to_code(const llvm::CallBase &call);

// In the order of their numbers, which begin at 1. Makes a block of each.
llvm::SmallVector<Site, 16> make_sites(llvm::Function &function, const Inside &inside,
                                       const locks::Held &held,
                                       llvm::FunctionAnalysisManager &analyses, Omitted &omitted);

// Whether the site in front of a return is that of its call.
bool has_call(llvm::ArrayRef<Site> sites, unsigned number);

// When all is in the function that a region does.
void add_live_ins(llvm::Function &function, llvm::MutableArrayRef<Site> sites,
                  const locks::Held &held);

} // namespace durumcc::ido
