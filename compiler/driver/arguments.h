// What a command line of cc asks for, as far as the driver has to know.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

// The bits of the driver's own options, by language and member: nvl_relaxed.
enum OptionBit : unsigned {
#define DURUMCC_OPTION(language, member, option, bit, text) language##_##member = bit,
#include "options.def"
};

struct Request {
    // There is a file (or the standard input) of a language that the front end reads; and one that
    // has not been preprocessed.
    bool has_source = false;
    bool has_includes = false;
    // There is intermediate code, which the passes read but the front end does not.
    bool has_intermediate_code = false;
    bool wants_help = false;
    bool wants_version = false;
    bool wants_nvl_diagnostics = false;
    bool wants_ido_diagnostics = false;
    // An option that would leave out the passes, or empty.
    std::string refused;
    // An option that means something with -fido only, which is not there; or empty.
    std::string lacks_sections;
    // A file with names of variables that last; or empty.
    std::string variables_file;
    // Where the code goes that completes sections of the program; or empty.
    std::string code_file;
    // The bits of __nvl_options (nvl.h) and of __durum_ido_options (durum_ido.h), from options of
    // the driver's own.
    unsigned nvl_options = 0;
    unsigned ido_options = 0;
    // Where the driver may include a header of its own: in front of all words, or behind the first
    // header of the user's if that one is precompiled, since Clang takes such a header only as the
    // first one.
    size_t include_at = 0;
    // A program or a shared library comes out, with the usual libraries.
    bool links = false;
    bool links_statically = false;
    bool links_shared = false;

    // Sections, what threads do while they hold a lock, are to be durable.
    bool has_sections() const { return ido_options & ido_sections; }
};

// Takes the driver's own options out of the arguments, which are Clang's from then on.
Request read_arguments(std::vector<std::string> &arguments);
