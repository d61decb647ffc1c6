#include "help.h"

#include "identity.h"

#include <cstdio>

namespace {

enum class Language { nvl, ido };

struct Message {
    Language language;
    const char *id;
    const char *text;
    const char *cure;
};

constexpr Message messages[] = {
#define DURUMCC_DIAGNOSTIC(language, name, id, level, text, cure)                                  \
    {Language::language, id, text, cure},
#include "diagnostics.def"
#undef DURUMCC_DIAGNOSTIC
#define DURUMCC_REFUSAL(name, id, text, cure) {Language::ido, id, text, cure},
#include "refusals.def"
};

struct Option {
    const char *name;
    const char *text;
};

constexpr Option options[] = {
#define DURUMCC_OPTION(language, member, option, bit, text) {option, text},
#include "options.def"
    {"-fdurable-globals=FILE", "with -fido: variables that last, by names in a file, one on a\n"
                               "line: count, server.c:count, function.count"},
    {"-fdurable-code=FILE", "with -fido: links the program twice, the second time as a file\n"
                            "that only completes its sections; the program carries it"},
    {"--print-nvl-diagnostics", "list the errors of NVL-C: id, message, cure"},
    {"--print-ido-diagnostics", "list the errors of -fido: id, message, cure"},
    {"--version", "version of durumcc and of the Clang it uses"},
};

// The name, and the lines of the text in a column.
void print_option(const char *name, std::string text) {
    constexpr int column = 27;
    for (size_t end; (end = text.find('\n')) != std::string::npos; name = "") {
        std::printf("  %-*s%s\n", column - 2, name, text.substr(0, end).c_str());
        text.erase(0, end + 1);
    }
    std::printf("  %-*s%s\n", column - 2, name, text.c_str());
}

void print_messages(Language language) {
    for (const Message &message : messages)
        if (message.language == language)
            std::printf("%s\t%s\t%s\n", message.id, message.text, message.cure);
}

} // namespace

void print_help(const std::string &clang) {
    std::printf(
        "durumcc %s: a C compiler with NVL-C, persistent memory in the C language.\n"
        "\n"
        "usage: durumcc [options of clang] file...\n"
        "\n"
        "It takes the place of cc, gcc or clang: all options are Clang's and are handed to\n"
        "  %s\n"
        "with the NVL-C front end. A program that does not include <nvl.h> is compiled to the\n"
        "same code as by Clang.\n"
        "\n"
        "Options of its own:\n",
        DURUMCC_VERSION, clang.c_str());
    for (const Option &option : options)
        print_option(option.name, option.text);
    print_option("--help", "this text; `" + clang + " --help` has Clang's");
    std::printf("\n"
                "-disable-llvm-passes is refused: it would leave out what makes stores durable.\n");
}

void print_nvl_diagnostics() {
    print_messages(Language::nvl);
}

void print_ido_diagnostics() {
    print_messages(Language::ido);
}

// In one line with the version of Clang, for build systems that look for it in the first one.
void print_version() {
    std::printf("durumcc (durum %s, plugins %s) on ", DURUMCC_VERSION, PLUGINS_IDENTITY);
    std::fflush(stdout);
}
