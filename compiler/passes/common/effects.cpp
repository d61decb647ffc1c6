// The optimizer has found out what functions do, before they got calls of the runtime: that they
// touch nothing but what their arguments lead to, and always return. Not any more.
#include "effects.h"

#include "llvm/IR/InstIterator.h"

namespace durumcc {

using namespace llvm;

void forget_effects(Module &module, const Language &language) {
    for (Function &function : module) {
        // One that stores nothing got no calls, and calls none that did.
        if (function.isDeclaration() || function.onlyReadsMemory())
            continue;
        for (Attribute::AttrKind kind : {Attribute::Memory, Attribute::NoSync, Attribute::NoFree,
                                         Attribute::WillReturn, Attribute::NoCallback})
            function.removeFnAttr(kind);
        for (User *user : function.users())
            if (auto *call = dyn_cast<CallBase>(user))
                for (Attribute::AttrKind kind : {Attribute::Memory, Attribute::WillReturn})
                    call->removeFnAttr(kind);
        for (Argument &argument : function.args()) {
            if (!argument.getType()->isPointerTy() || !language.is_durable(&argument))
                continue;
            for (Attribute::AttrKind kind :
                 {Attribute::WriteOnly, Attribute::ReadNone, Attribute::ReadOnly}) {
                argument.removeAttr(kind);
                for (User *user : function.users())
                    if (auto *call = dyn_cast<CallBase>(user))
                        if (argument.getArgNo() < call->arg_size())
                            call->removeParamAttr(argument.getArgNo(), kind);
            }
        }
    }
}

} // namespace durumcc
