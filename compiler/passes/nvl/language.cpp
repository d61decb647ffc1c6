#include "nvl/language.h"

#include "common/mark.h"
#include "common/writes.h"
#include "nvl/runtime.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Instructions.h"

namespace durumcc::nvl {
namespace {

using namespace llvm;

class Nvl final : public Language {
    StringRef prefix() const override { return "__nvl_"; }

    bool is_durable(const Value *pointer) const override { return is_nvm(pointer); }

    // Calls of both are paired and nested (docs/reference/nvl-ir.md).
    std::optional<Depth> change(const Instruction &instruction) const override {
        StringRef name = runtime::called(instruction);
        const int levels = name == runtime::tx_begin ? 1 : name == runtime::tx_end ? -1 : 0;
        return Depth{levels, levels};
    }

    Value *is_inside(IRBuilderBase &builder) const override {
        Module &module = *builder.GetInsertBlock()->getModule();
        Value *place = builder.CreateCall(runtime::declare(module, runtime::tx_depth), {});
        Value *depth = builder.CreateLoad(builder.getInt32Ty(), place);
        return builder.CreateICmpSGT(depth, builder.getInt32(0));
    }

    std::optional<Write> announced(Instruction &instruction) const override {
        StringRef name = runtime::called(instruction);
        if (name != runtime::copy && name != runtime::fill)
            return std::nullopt;
        auto &call = cast<CallBase>(instruction);
        return Write::of_length(call, call.getArgOperand(0), call.getArgOperand(2));
    }

    bool has_location(const Instruction &instruction) const override {
        const auto *call = dyn_cast<CallInst>(&instruction);
        const Function *callee = call ? call->getCalledFunction() : nullptr;
        return callee &&
               StringSwitch<bool>(callee->getName())
                   .Cases(runtime::store_ptr, runtime::store_weak, runtime::load_weak, true)
                   .Cases(runtime::copy, runtime::fill, runtime::persist, runtime::write_back, true)
                   .Cases(runtime::log, runtime::check_same, true)
                   .Cases(runtime::tx_begin, runtime::tx_end, runtime::tx_range, true)
                   .Cases(runtime::alloc, runtime::alloc_pinned, true)
                   .Cases("__nvl_get_root", "__nvl_set_root", true)
                   .Cases("nvl_close", "nvl_collect", "nvl_set_concurrent", true)
                   .Default(false);
    }

    StringRef suffix_outside() const override { return ".nvl0"; }
    StringRef suffix_inside() const override { return ".nvltx"; }
};

constexpr Nvl nvl_language;

} // namespace

const Language &language = nvl_language;

Options options_of(const Module &module) {
    const uint64_t bits = option_bits(module, language);
    Options options;
#define DURUMCC_OPTION(language, member, option, bit, text) DURUMCC_OPTION_##language(member, bit)
#define DURUMCC_OPTION_nvl(member, bit) options.member = bits & (bit);
#define DURUMCC_OPTION_ido(member, bit)
#include "options.def"
#undef DURUMCC_OPTION_nvl
#undef DURUMCC_OPTION_ido
    return options;
}

} // namespace durumcc::nvl
