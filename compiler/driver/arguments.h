// What a command line of cc asks for, as far as the driver has to know.
#pragma once

#include <string>
#include <vector>

struct Request {
    // There is a file (or the standard input) of a language that the front end reads; and one that
    // has not been preprocessed.
    bool has_source = false;
    bool has_includes = false;
    // There is intermediate code, which the passes read but the front end does not.
    bool has_intermediate_code = false;
    bool wants_help = false;
    bool wants_version = false;
    bool wants_diagnostics = false;
    // An option that would leave out the passes, or empty.
    std::string refused;
    // The bits of __nvl_options (nvl.h), from options of the driver's own.
    unsigned nvl_options = 0;
    // A program or a shared library comes out, with the usual libraries.
    bool links = false;
    bool links_statically = false;
};

// Takes the driver's own options out of the arguments, which are Clang's from then on.
Request read_arguments(std::vector<std::string> &arguments);
