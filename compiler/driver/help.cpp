#include "help.h"

#include "identity.h"

#include <cstdio>

namespace {

struct Message {
    const char *id;
    const char *text;
    const char *cure;
};

constexpr Message messages[] = {
#define NVL_DIAGNOSTIC(name, id, level, text, cure) {id, text, cure},
#include "diagnostics.def"
#undef NVL_DIAGNOSTIC
};

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
        "Options of its own:\n"
        "  -fnvl-relaxed            plain stores to NVM outside of transactions become durable "
        "with\n"
        "                           the next transaction that changes the same bytes, or never\n"
        "  -fnvl-no-checks          leave out the checks of comparisons of pointers into NVM\n"
        "  --print-nvl-diagnostics  list the errors of NVL-C: id, message, cure\n"
        "  --version                version of durumcc and of the Clang it uses\n"
        "  --help                   this text; `%s --help` has Clang's\n"
        "\n"
        "-disable-llvm-passes is refused: it would leave out what makes stores durable.\n",
        DURUMCC_VERSION, clang.c_str(), clang.c_str());
}

void print_diagnostics() {
    for (const Message &message : messages)
        std::printf("%s\t%s\t%s\n", message.id, message.text, message.cure);
}

// In one line with the version of Clang, for build systems that look for it in the first one.
void print_version() {
    std::printf("durumcc (durum %s, plugins %s) on ", DURUMCC_VERSION, PLUGINS_IDENTITY);
    std::fflush(stdout);
}
