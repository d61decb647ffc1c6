// durumcc: runs Clang with the parts of NVL-C, which it finds relative to its own file:
//
//   PREFIX/bin/durumcc
//   PREFIX/lib/durumcc/durumcc-frontend.so    the Clang plugin
//   PREFIX/lib/durumcc/durumcc-passes.so      the LLVM plugin
//   PREFIX/lib/durumcc/include/nvl.h
//   PREFIX/lib/libdurum.so                    the runtime, and libdurum.a
//
// It replaces itself by Clang, so that signals, exit codes and the process tree are those of a cc.
#include "arguments.h"
#include "help.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

std::string own_path() {
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    return size > 0 ? std::string(path, size) : std::string();
}

std::string directory_of(const std::string &path) {
    size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

bool exists(const std::string &path) {
    return access(path.c_str(), R_OK) == 0;
}

// The Clang that the plugins were built for. Another release would not load them.
std::string find_clang() {
    return exists(CLANG) ? CLANG : "clang-19";
}

int run(const std::string &clang, const std::vector<std::string> &arguments) {
    std::vector<char *> words{const_cast<char *>(clang.c_str())};
    for (const std::string &argument : arguments)
        words.push_back(const_cast<char *>(argument.c_str()));
    words.push_back(nullptr);
    execvp(clang.c_str(), words.data());
    std::fprintf(stderr,
                 "durumcc: cannot run %s: %s. It comes with the package clang-19 of Debian.\n",
                 clang.c_str(), std::strerror(errno));
    return 1;
}

} // namespace

int main(int argc, char **argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    std::string clang = find_clang();
    // Clang's inner commands, as `-###` prints them, have all options already.
    if (!arguments.empty() && arguments[0].rfind("-cc1", 0) == 0)
        return run(clang, arguments);
    Request request = read_arguments(arguments);

    if (request.wants_help)
        return print_help(clang), 0;
    if (request.wants_diagnostics)
        return print_diagnostics(), 0;
    if (request.wants_version) {
        print_version();
        return run(clang, {"--version"});
    }
    if (!request.refused.empty()) {
        std::fprintf(stderr,
                     "durumcc: %s is refused: the passes that it leaves out make stores to NVM "
                     "durable. -O0 optimizes nothing and keeps them.\n",
                     request.refused.c_str());
        return 1;
    }

    std::string parts = directory_of(directory_of(own_path())) + "/lib/durumcc";
    std::string front_end = parts + "/durumcc-frontend.so";
    std::string passes = parts + "/durumcc-passes.so";
    if (!exists(front_end)) {
        std::fprintf(stderr, "durumcc: %s is missing: install durumcc again.\n", front_end.c_str());
        return 1;
    }
    // Each only where it is used: Clang warns about others. In front of the user's own options, of
    // which the last one counts.
    std::vector<std::string> own;
    bool has_passes = exists(passes);
    if (request.has_includes)
        own = {"-isystem", parts + "/include", "-D__NVLC__=1",
               "-D__NVL_OPTIONS__=" + std::to_string(request.nvl_options)};
    if (request.has_source) {
        own.push_back("-fplugin=" + front_end);
        if (!has_passes)
            own.push_back("-fplugin-arg-nvl-no-passes");
    }
    if (has_passes && (request.has_source || request.has_intermediate_code))
        own.push_back("-fpass-plugin=" + passes);
    arguments.insert(arguments.begin(), own.begin(), own.end());
    // Where it is installed with the runtime, programs are linked with it, if they use it.
    std::string libraries = directory_of(parts);
    bool has_shared = exists(libraries + "/libdurum.so") && !request.links_statically;
    if (request.links && (has_shared || exists(libraries + "/libdurum.a"))) {
        arguments.push_back("-L" + libraries);
        for (const char *word : {"-Wl,--push-state,--as-needed", "-ldurum", "-lpthread", "-ldl",
                                 "-lm", "-Wl,--pop-state"})
            arguments.push_back(word);
    }
    return run(clang, arguments);
}
