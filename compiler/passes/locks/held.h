// How many locks a thread holds at each place of a module. What it does while it holds one is a
// section (iDO, §II: a failure-atomic section, or FASE).
//
// A section may begin in one function and end in another one. So each function has a summary: by
// how many locks its caller holds more when it returns. It is made of the summaries of those that
// it calls, in any order, and until none of them changes.
#pragma once

#include "common/depths.h"
#include "common/versions.h"

#include "llvm/IR/Module.h"

namespace durumcc::locks {

// What a function does to the locks of its caller. Nothing, where it never comes back that way.
struct Summary {
    std::optional<Depth> returns;
    // By an exception.
    std::optional<Depth> unwinds;
    // The fewest that are held inside of it, counted from its begin: below 0, it lets locks of its
    // caller go.
    int lowest = 0;

    bool operator==(const Summary &other) const {
        return returns == other.returns && unwinds == other.unwinds && lowest == other.lowest;
    }
};

// Attributes of the two versions of a function (common/versions.h), which are entered in one way.
constexpr const char entered_inside[] = "durum-entered-inside";
constexpr const char entered_outside[] = "durum-entered-outside";

class Held final : public Levels {
  public:
    explicit Held(const llvm::Module &module);

    const Summary &summary(const llvm::Function &function) const;

    // How many locks a thread holds that enters the function. Nobody knows who calls what other
    // files see, or what is called by its address; main is called without locks.
    Depth entry(const llvm::Function &function) const;

    std::optional<Depth> change(const llvm::Instruction &instruction) const override;
    std::optional<Depth> change_to(const llvm::Instruction &end, unsigned successor) const override;

  private:
    void summarize(const llvm::Module &module);
    void enter(const llvm::Module &module);
    Summary summary_of(const llvm::Function &function) const;
    Summary effect(const llvm::CallBase &call) const;
    Summary effect_of_callee(const llvm::CallBase &call) const;
    bool add_by_address(unsigned arguments, const Summary &summary);

    llvm::DenseMap<const llvm::Function *, Summary> summaries;
    // Of those whose address is known, by how many arguments they have.
    llvm::DenseMap<unsigned, Summary> by_address;
    llvm::DenseMap<const llvm::Function *, Depth> entries;
};

} // namespace durumcc::locks
