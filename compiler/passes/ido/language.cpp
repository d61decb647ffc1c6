#include "ido/language.h"

#include "common/mark.h"
#include "common/writes.h"
#include "ido/counters.h"
#include "ido/runtime.h"

#include "llvm/IR/IRBuilder.h"

namespace durumcc::ido {
namespace {

using namespace llvm;

class Ido final : public Language {
  public:
    StringRef prefix() const override { return runtime::prefix; }

    // Any memory may be: the runtime knows the addresses of the store.
    bool is_durable(const Value *pointer) const override { return !is_counter(pointer); }

    // Locks are looked at with their functions (locks/held.h).
    std::optional<Depth> change(const Instruction &) const override { return Depth{}; }

    Value *is_inside(IRBuilderBase &builder) const override {
        Module &module = *builder.GetInsertBlock()->getModule();
        Value *thread = builder.CreateCall(runtime::declare(module, runtime::thread), {});
        return builder.CreateICmpSGT(runtime::depth(builder, thread), builder.getInt32(0));
    }

    std::optional<Write> announced(Instruction &) const override { return std::nullopt; }
    bool has_location(const Instruction &) const override { return false; }
    StringRef suffix_outside() const override { return ".outside"; }
    StringRef suffix_inside() const override { return ".inside"; }
};

constexpr Ido ido_language;

} // namespace

const Language &language = ido_language;

Options options_of(const Module &module) {
    const uint64_t bits = option_bits(module, language);
    Options options;
#define DURUMCC_OPTION(language, member, option, bit, text) DURUMCC_OPTION_##language(member, bit)
#define DURUMCC_OPTION_nvl(member, bit)
#define DURUMCC_OPTION_ido(member, bit) options.member = bits & (bit);
#include "options.def"
#undef DURUMCC_OPTION_nvl
#undef DURUMCC_OPTION_ido
    return options;
}

StringRef name_of(const Function &function) {
    StringRef name = function.getName();
    if (!name.consume_back(ido_language.suffix_inside()))
        name.consume_back(ido_language.suffix_outside());
    return name;
}

} // namespace durumcc::ido
