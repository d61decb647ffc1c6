// Functions of the runtime's, as the passes declare them.
#pragma once

#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Module.h"

namespace durumcc {

// What the optimizer may know of a function.
enum class Effects {
    // Nothing: it may do whatever a function of another file may do. So neither loads nor stores of
    // the program pass it, and stores become durable in the order of such calls.
    Any,
    // It reads the bytes that its argument leads to: a store to them stays on its side of the call,
    // and loads of anything may pass.
    ReadsArgument,
    // Its value depends on the thread only.
    None,
};

struct Signature {
    const char *name;
    // The result, then the parameters: v void, n pointer of address space 1, p pointer, l 64 bits,
    // i 32 bits.
    const char *types;
    Effects effects;
};

llvm::FunctionCallee declare(llvm::Module &module, const Signature &signature);

} // namespace durumcc
