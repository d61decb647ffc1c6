#include "ido/processor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/TargetParser/Triple.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

constexpr char prefix[] = "__durum_feature.", section[] = "durum_features";

// What every processor of an architecture has, what none has to have, as it only is a choice of how
// code is made, and what only systems use; a star stands for any end. A version of AArch64 is what
// it consists of, which is named beside it.
constexpr char x86_base[] = "64bit cmov cx8 fxsr mmx sse sse2 x87 "
                            "harden-sls* lvi-* prefer-* retpoline* seses";
constexpr char aarch64_base[] = "fp-armv8 neon v8a v8.* v9a v9.* "
                                "bti fmv harden-sls* outline-atomics reserve-x* strict-align "
                                "tagged-globals zcm zcz "
                                "ccidx ete perfmon predres ras spe spe-eef trbe";

bool is_base(const Triple &triple, StringRef feature) {
    SmallVector<StringRef, 32> base;
    StringRef(triple.isX86() ? x86_base : aarch64_base).split(base, ' ');
    return any_of(base, [&](StringRef name) {
        return name.consume_back("*") ? feature.starts_with(name) : feature == name;
    });
}

GlobalVariable *name_of(Module &module, StringRef feature) {
    const std::string symbol = (prefix + feature).str();
    if (GlobalVariable *known = module.getNamedGlobal(symbol))
        return known;
    Constant *text = ConstantDataArray::getString(module.getContext(), feature);
    auto *name = new GlobalVariable(module, text->getType(), true, GlobalValue::LinkOnceODRLinkage,
                                    text, symbol);
    name->setVisibility(GlobalValue::HiddenVisibility);
    name->setComdat(module.getOrInsertComdat(symbol));
    name->setSection(section);
    name->setAlignment(Align(1));
    return name;
}

// A relocation that changes no byte.
void refer(Function &function, GlobalVariable *name) {
    IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    auto *type = FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false);
    builder.CreateCall(InlineAsm::get(type, ".reloc ., BFD_RELOC_NONE, ${0:c}", "i", true), {name});
}

} // namespace

void tell_features(Module &module) {
    const Triple triple(module.getTargetTriple());
    for (Function &function : module) {
        if (function.isDeclarationForLinker() || function.hasFnAttribute(Attribute::Naked))
            continue;
        SmallVector<StringRef, 64> features;
        function.getFnAttribute("target-features")
            .getValueAsString()
            .split(features, ',', -1, false);
        for (StringRef feature : features)
            if (feature.consume_front("+") && !is_base(triple, feature))
                refer(function, name_of(module, feature));
    }
}

} // namespace durumcc::ido
