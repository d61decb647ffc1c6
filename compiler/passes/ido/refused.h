// What sections may not do (refusals.def).
#pragma once

#include "ido/sites.h"

#include "llvm/IR/IRBuilder.h"

#include <set>
#include <string>
#include <tuple>

namespace durumcc::ido {

enum class Refusal {
#define DURUMCC_REFUSAL(name, id, text, cure) name,
#include "ido/refusals.def"
};

// Where errors have been told: code that was inlined is in a place of the program several times.
class Reported {
  public:
    // Whether it is the first one of its line.
    bool add(const llvm::Instruction &place, Refusal refusal);

  private:
    std::set<std::tuple<std::string, unsigned, Refusal>> lines;
};

// The module as a whole.
void refuse(llvm::Module &module, Refusal refusal);

// Whether something in it makes it impossible to enter it where a crash has left it.
bool has_obstacle(const llvm::Function &function);

// What functions do with locks, in sections or not, before there are two versions of one: the
// version for sections waits with more than one lock, and the other one has none that it could let
// go.
void refuse_locks(const llvm::Module &module, const locks::Held &held, Reported &reported);

// What the runtime says of a place where the program ends: struct __durum_ido_place, of which a
// line has one for each.
llvm::Constant *place_of(const llvm::Instruction &instruction, Refusal refusal,
                         llvm::StringRef subject);

// Before the function is changed. Whether sections of it can be made durable: false, if it cannot
// be entered where a crash has left it. Then it has none, or was refused.
bool refuse(llvm::Function &function, const Inside &inside, llvm::Value *thread,
            Reported &reported);

// Callers of other files learn that the functions of this one were compiled for sections.
void tell_callers(llvm::Module &module);

// A function that is called in a module where it cannot be.
void refuse_calls(const llvm::Function &function, Refusal refusal);

// A function that returns with other locks than its declaration says.
void refuse_declaration(const llvm::Function &function);

// A durable variable whose address is in the initializer of another one.
void refuse_address(const llvm::GlobalVariable &variable);

// What is known when the regions are.
void refuse_live_ins(llvm::ArrayRef<Site> sites, Reported &reported);

} // namespace durumcc::ido
