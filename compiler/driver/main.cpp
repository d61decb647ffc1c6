// durumcc: runs Clang with the parts of its languages, which it finds relative to its own file:
//
//   PREFIX/bin/durumcc, and durumc++, by which name it runs clang++
//   PREFIX/lib/durumcc/durumcc-frontend.so    the Clang plugin
//   PREFIX/lib/durumcc/durumcc-passes.so      the LLVM plugin
//   PREFIX/lib/durumcc/include/nvl.h          what programs in NVL-C include
//   PREFIX/lib/durumcc/include/nv.h           what programs may that are compiled with -fido
//   PREFIX/lib/durumcc/include/durum_ido.h    what is included in front of sources with -fido
//   PREFIX/lib/durumcc/code.ld                how code is linked that only completes sections
//   PREFIX/lib/durumcc/carrier.c              how a program carries that code
//   PREFIX/lib/libdurum.so                    the runtime, and libdurum.a
//
// It replaces itself by Clang, so that signals, exit codes and the process tree are those of a cc.
// With -fdurable-code= it runs Clang three times, and waits.
#include "arguments.h"
#include "help.h"
#include "library.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
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

// durumc++, or another name by which a compiler of C++ is called, such as a link `c++`.
bool is_for_cpp(const std::string &name) {
    return name.find("++", name.rfind('/') + 1) != std::string::npos;
}

// The Clang that the plugins were built for. Another release would not load them.
std::string find_clang(bool is_cpp) {
    if (is_cpp)
        return exists(CLANG "++") ? CLANG "++" : "clang++-19";
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

// Runs it and waits for its end: the exit code, as a shell has it.
int run_first(const std::string &clang, const std::vector<std::string> &arguments) {
    const pid_t child = fork();
    if (child == 0)
        _exit(run(clang, arguments));
    int status = 1 << 8;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int fail(const std::string &message) {
    std::fprintf(stderr, "durumcc: %s\n", message.c_str());
    return 1;
}

using Words = std::vector<std::string>;

void insert(Words &into, size_t at, const Words &words) {
    into.insert(into.begin() + at, words.begin(), words.end());
}

// The names in a file, one on a line, with a semicolon between them; `#` begins a comment. Whether
// it can be read.
bool read_names(const std::string &path, std::string &names) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        line.erase(std::min(line.find('#'), line.size()));
        std::string name;
        for (char letter : line)
            if (!std::isspace(static_cast<unsigned char>(letter)))
                name += letter;
        if (!name.empty())
            names += (names.empty() ? "" : ";") + name;
    }
    // They become a string of C.
    return file.eof() && names.find_first_of("\"\\") == std::string::npos;
}

// What Clang is given in front of the user's own options, of which the last one counts: each only
// where it is used, since Clang warns about others.
Words options_for(const Request &request, const std::string &names, const std::string &parts,
                  bool has_passes) {
    Words own;
    if (request.has_includes)
        own = {"-isystem", parts + "/include", "-D__NVLC__=1",
               "-D__NVL_OPTIONS__=" + std::to_string(request.nvl_options)};
    if (request.has_includes && request.has_sections())
        own.push_back("-D__DURUM_IDO_OPTIONS__=" + std::to_string(request.ido_options));
    if (request.has_includes && !names.empty())
        own.push_back("-D__DURUM_IDO_VARIABLES__=\"" + names + "\"");
    if (request.has_source) {
        own.push_back("-fplugin=" + parts + "/durumcc-frontend.so");
        if (!has_passes)
            own.push_back("-fplugin-arg-nvl-no-passes");
        if (request.has_sections())
            own.push_back("-fplugin-arg-nvl-ido");
    }
    const std::string passes = parts + "/durumcc-passes.so";
    if (has_passes && (request.has_source || request.has_intermediate_code))
        own.push_back("-fpass-plugin=" + passes);
    // The passes have the option only when they are there before LLVM reads its own.
    if (has_passes && request.has_intermediate_code && request.has_sections())
        insert(own, own.size(), {"-Xclang", "-load", "-Xclang", passes, "-mllvm", "-durumcc-ido"});
    return own;
}

// The runtime, where it is installed beside durumcc.
Words runtime_in(const std::string &libraries) {
    return {"-L" + libraries, "-Wl,--push-state,--as-needed", "-ldurum", "-lpthread", "-ldl", "-lm",
            "-Wl,--pop-state"};
}

// Functions of the runtime whose names differ from one compiler of Rust to the next, and what takes
// their place in code that only completes sections (code.ld has the others).
Words replaced_in(const std::string &library) {
    Words words;
    for (auto [ending, other] :
         {std::pair("rust_begin_unwind", "__durum_ido_panics"),
          std::pair("__rust_alloc_error_handler", "__durum_ido_lacks_memory")})
        if (std::string name = symbol_of(library, ending); !name.empty())
            words.push_back("-Wl,--defsym=" + name + "=" + other);
    return words;
}

// Links what the program is linked of once more, as a static executable that only completes its
// sections. Where a source is compiled, the program's own command tells of what is wrong with it.
int link_code(const std::string &clang, const Request &request, Words words,
              const std::string &libraries) {
    if (request.links_shared)
        return fail("-fdurable-code= is for programs, and this is a shared library.");
    const std::string library = libraries + "/libdurum.a";
    if (!exists(library))
        return fail(library + " is missing, which -fdurable-code= needs.");
    insert(words, words.size(), runtime_in(libraries));
    insert(words, words.size(), replaced_in(library));
    insert(words, words.size(),
           {"-static", "-w", "-Wl,--gc-sections,--strip-all,--no-eh-frame-hdr,--no-warnings",
            "-Wl,-T," + libraries + "/durumcc/code.ld", "-o", request.code_file});
    return run_first(clang, words);
}

// Makes the object by which the program carries that code, and tells the runtime of it.
int make_carrier(const std::string &clang, const std::string &code_file, const std::string &parts,
                 const std::string &object) {
    return run_first(clang, {"-c", "-x", "c", "-O1", "-DCODE_FILE=\"" + code_file + "\"",
                             parts + "/carrier.c", "-o", object});
}

// With the code that completes its sections, which the program carries.
int link_with_code(const std::string &clang, const Request &request, Words arguments,
                   const std::string &libraries) {
    if (int failed = link_code(clang, request, arguments, libraries))
        return failed;
    const std::string carrier = request.code_file + ".carrier.o";
    int failed = make_carrier(clang, request.code_file, libraries + "/durumcc", carrier);
    if (!failed) {
        // It is an object, whatever language the words before it have chosen.
        insert(arguments, arguments.size(), {"-x", "none", carrier});
        insert(arguments, arguments.size(), runtime_in(libraries));
        failed = run_first(clang, arguments);
    }
    unlink(carrier.c_str());
    return failed;
}

} // namespace

int main(int argc, char **argv) {
    Words arguments(argv + 1, argv + argc);
    std::string clang = find_clang(is_for_cpp(argc > 0 ? argv[0] : ""));
    // Clang's inner commands, as `-###` prints them, have all options already.
    if (!arguments.empty() && arguments[0].rfind("-cc1", 0) == 0)
        return run(clang, arguments);
    Request request = read_arguments(arguments);
    const std::string libraries = directory_of(directory_of(own_path())) + "/lib";

    if (request.wants_help)
        return print_help(clang), 0;
    if (request.wants_nvl_diagnostics)
        return print_nvl_diagnostics(), 0;
    if (request.wants_ido_diagnostics)
        return print_ido_diagnostics(), 0;
    if (request.wants_version) {
        print_version();
        return run(clang, {"--version"});
    }
    if (!request.refused.empty())
        return fail(request.refused +
                    " is refused: the passes that it leaves out make stores durable. -O0 optimizes "
                    "nothing and keeps them.");

    if (!request.lacks_sections.empty())
        return fail(request.lacks_sections + " is an option of -fido, which is missing.");

    std::string names;
    if (!request.variables_file.empty() && !read_names(request.variables_file, names))
        return fail(request.variables_file +
                    " cannot be read as names of variables, one on a line.");

    const std::string parts = libraries + "/durumcc";
    if (!exists(parts + "/durumcc-frontend.so"))
        return fail(parts + "/durumcc-frontend.so is missing: install durumcc again.");
    if (request.has_sections() && request.has_includes)
        insert(arguments, request.include_at, {"-include", parts + "/include/durum_ido.h"});
    insert(arguments, 0, options_for(request, names, parts, exists(parts + "/durumcc-passes.so")));
    // Where it is installed with the runtime, programs are linked with it, if they use it.
    if (request.links && !request.code_file.empty())
        return link_with_code(clang, request, arguments, libraries);
    bool has_shared = exists(libraries + "/libdurum.so") && !request.links_statically;
    if (request.links && (has_shared || exists(libraries + "/libdurum.a")))
        insert(arguments, arguments.size(), runtime_in(libraries));
    return run(clang, arguments);
}
