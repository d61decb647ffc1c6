// Calls of the runtime that may end the program tell it file and line, for its message.
//
//   call void @__nvl_log(%p, i64 4), !dbg !7      call void @__nvl_log_at(%p, i64 4, @file, i32 12)
#include "locations.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace durumcc {
namespace {

using namespace llvm;

class Locations {
  public:
    Locations(Module &module, const Language &language) : module(module), language(language) {}

    void pass(CallBase &call) {
        const DILocation *location = call.getDebugLoc().get();
        Function *callee = call.getCalledFunction();
        // Line 0 is code that belongs to several.
        if (!location || location->getLine() == 0)
            return;
        IRBuilder<> builder(&call);
        FunctionType *type = callee->getFunctionType();
        SmallVector<Type *, 8> types(type->params());
        types.append({builder.getPtrTy(), builder.getInt32Ty()});
        SmallVector<Value *, 8> arguments(call.args());
        arguments.append({file(*location->getFile()), builder.getInt32(location->getLine())});
        FunctionCallee located =
            module.getOrInsertFunction((callee->getName() + "_at").str(),
                                       FunctionType::get(type->getReturnType(), types, false));
        if (auto *function = dyn_cast<Function>(located.getCallee()))
            function->copyAttributesFrom(callee);
        CallInst *replacement = builder.CreateCall(located, arguments);
        replacement->setAttributes(call.getAttributes());
        replacement->takeName(&call);
        call.replaceAllUsesWith(replacement);
        call.eraseFromParent();
    }

  private:
    Constant *file(const DIFile &file) {
        const std::string name = file_name(file);
        Constant *&text = files[name];
        if (!text)
            text = IRBuilder<>(module.getContext())
                       .CreateGlobalStringPtr(name, language.prefix() + "file", 0, &module);
        return text;
    }

    Module &module;
    const Language &language;
    StringMap<Constant *> files;
};

} // namespace

std::string file_name(const DIFile &file) {
    SmallString<128> name(file.getFilename());
    SmallString<128> current;
    if (!sys::path::is_absolute(name) && !sys::fs::current_path(current) &&
        file.getDirectory() != current) {
        name = file.getDirectory();
        sys::path::append(name, file.getFilename());
    }
    return std::string(name);
}

void pass_locations(Module &module, const Language &language) {
    Locations locations(module, language);
    for (Function &function : module)
        for (Instruction &instruction : make_early_inc_range(instructions(function)))
            if (language.has_location(instruction))
                locations.pass(cast<CallBase>(instruction));
}

} // namespace durumcc
