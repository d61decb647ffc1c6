// The functions that the runtime has for compiled code (docs/reference/ido-ir.md).
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace durumcc::ido::runtime {

// What is known of the calling thread.
constexpr const char thread[] = "__durum_ido_thread";
// Each of these records, if it has to.
constexpr const char record[] = "__durum_ido_record";
constexpr const char record_word[] = "__durum_ido_record_word";
constexpr const char record_release[] = "__durum_ido_record_release";
constexpr const char call[] = "__durum_ido_call";
constexpr const char returned[] = "__durum_ido_returned";
// Where a function is entered that resumes: copies the words, and gives the region.
constexpr const char enter[] = "__durum_ido_enter";
constexpr const char wrote[] = "__durum_ido_wrote";
constexpr const char locals[] = "__durum_ido_locals";
// Those that no record needs.
constexpr const char other_locals[] = "__durum_ido_other_locals";
constexpr const char leave[] = "__durum_ido_leave";
constexpr const char copy_argument[] = "__durum_ido_copy_argument";
// Ends the program if it is called in a section.
constexpr const char refused[] = "__durum_ido_refused";
// The same, if the symbol is null, or if the function's code has nothing in front.
constexpr const char check_call[] = "__durum_ido_check_call";
constexpr const char check_pointer[] = "__durum_ido_check_pointer";
constexpr const char written_elsewhere[] = "__durum_ido_written_elsewhere";
constexpr const char read_elsewhere[] = "__durum_ido_read_elsewhere";
// Where a variable is that lasts.
constexpr const char global[] = "__durum_ido_global";
constexpr const char register_globals[] = "__durum_ido_register_globals";
constexpr const char register_locks[] = "__durum_ido_register_locks";
constexpr const char register_addresses[] = "__durum_ido_register_addresses";
constexpr const char register_functions[] = "__durum_ido_register";
// In front of the names of functions: symbols that are there if they were compiled for sections.
constexpr const char sections_of[] = "__durum_section.";
// The 8 bytes in front of the code of such functions.
constexpr uint64_t in_front_of_code = 0x6f64692e6d757264;
// What the functions of the threads' library become.
constexpr const char prefix[] = "__durum_ido_";

llvm::FunctionCallee declare(llvm::Module &module, llvm::StringRef name);

// Whether it is a function of the runtime's, also one that programs call.
bool has(llvm::StringRef name);

// The function of the runtime that an instruction calls, or an empty name.
llvm::StringRef called_by(const llvm::Instruction &instruction);

// What a function of the runtime's reads that programs call, or null.
llvm::Value *read_by(const llvm::Instruction &instruction);

// Whether code that resumes asks for it itself, so that it is no live-in.
bool is_asked_again(const llvm::Instruction &instruction);

// A value that a module has once, by its name; and a string.
llvm::GlobalVariable *constant(llvm::Module &module, const llvm::Twine &name,
                               llvm::Constant *value);
llvm::GlobalVariable *text(llvm::Module &module, llvm::StringRef text);

// The program tells the runtime of a table when it starts.
void call_at_start(llvm::Module &module, llvm::StringRef name, llvm::Constant &table,
                   uint64_t count);

// Whether it does nothing, or ends the program.
bool is_check(const llvm::Instruction &instruction);

// So many bytes behind a place.
llvm::Value *at(llvm::IRBuilderBase &builder, llvm::Value &place, uint64_t offset);

// What compiled code knows of a thread: how many locks it holds, and where the store is.
llvm::Value *depth(llvm::IRBuilderBase &builder, llvm::Value *thread);
llvm::Value *store_begin(llvm::IRBuilderBase &builder, llvm::Value *thread);
llvm::Value *store_size(llvm::IRBuilderBase &builder, llvm::Value *thread);

// Where a function is entered that resumes: the region, or 0, and the result of its call.
llvm::Value *region(llvm::IRBuilderBase &builder, llvm::Value *thread);
llvm::Value *result(llvm::IRBuilderBase &builder, llvm::Value *thread);
void enter_at(llvm::IRBuilderBase &builder, llvm::Value *thread, llvm::Value *words,
              llvm::Value *region, llvm::Value *result);

// Whether the thread has completed a section that it resumed.
llvm::Value *has_completed(llvm::IRBuilderBase &builder, llvm::Value *thread);

} // namespace durumcc::ido::runtime
