// Only as much of Clang's options as tells input files from options and their values. An option
// that is unknown here and has its value in a word of its own would make that word an input: then
// plugins are given to a Clang that has no use for them, which says so in a warning and goes on.
#include "arguments.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace {

// Options whose value is the next word, many on a line.
// clang-format off
const char *const with_value[] = {
    "--param", "--serialize-diagnostics", "--sysroot", "-A", "-B", "-D", "-F", "-I", "-L", "-MF",
    "-MJ", "-MQ", "-MT", "-T", "-Tbss", "-Tdata", "-Ttext", "-U", "-Xanalyzer", "-Xassembler",
    "-Xclang", "-Xlinker", "-Xopenmp-target", "-Xpreprocessor", "-arch", "-aux-info", "-e",
    "-framework", "-idirafter", "-imacros", "-imultilib", "-include", "-include-pch", "-iprefix",
    "-iquote", "-isysroot", "-isystem", "-isystem-after", "-iwithprefix", "-iwithprefixbefore",
    "-ivfsoverlay", "-l", "-mllvm", "-mmlir", "-o", "-rpath", "-specs", "-target", "-u",
    "-wrapper", "-working-directory", "-z",
};
// clang-format on

// Endings that Clang takes for a source, as docs of its driver list them.
const char *const source_endings[] = {"c",   "h",   "S",   "sx",  "cc",   "cp", "cxx",
                                      "cpp", "c++", "C",   "CPP", "m",    "M",  "mm",
                                      "hh",  "H",   "hpp", "hxx", "cppm", "cu"};
const char *const preprocessed_endings[] = {"i", "ii", "mi", "mii"};
const char *const header_endings[] = {"h", "hh", "hpp"};
const char *const intermediate_endings[] = {"bc", "ll"};

// Options that end before the linker, and those that take the usual libraries from it.
const char *const without_link[] = {
    "-c",
    "-S",
    "-E",
    "-M",
    "-MM",
    "-r",
    "--analyze",
    "-emit-ast",
    "-nostdlib",
    "-nodefaultlibs",
    "-nolibc",
    "-emit-pch",
    "-fsyntax-only",
    "--precompile",
};

// Options of the driver's own, with the language that has their bits.
struct OwnOption {
    const char *name;
    unsigned Request::*options;
    unsigned bit;
};
constexpr OwnOption own_options[] = {
#define DURUMCC_OPTION(language, member, option, bit, text)                                        \
    {option, &Request::language##_options, bit},
#include "options.def"
};

// With the name of a file behind it.
constexpr char variables_option[] = "-fdurable-globals=";
constexpr char code_option[] = "-fdurable-code=";

const OwnOption *find_own(const std::string &word) {
    for (const OwnOption &option : own_options)
        if (word == option.name)
            return &option;
    return nullptr;
}

template <typename List> bool contains(const List &list, const std::string &word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_precompiled(const std::string &header) {
    return access((header + ".pch").c_str(), R_OK) == 0 ||
           access((header + ".gch").c_str(), R_OK) == 0;
}

// A response file holds words as a shell would split them, quotes and backslashes included.
std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> words;
    std::string word;
    bool is_open = false;
    char quote = 0;
    for (size_t i = 0; i < text.size(); i++) {
        char c = text[i];
        if (c == '\\' && i + 1 < text.size() && quote != '\'') {
            word += text[++i];
            is_open = true;
        } else if (quote) {
            if (c == quote)
                quote = 0;
            else
                word += c;
        } else if (c == '"' || c == '\'') {
            quote = c;
            is_open = true;
        } else if (std::isspace(static_cast<unsigned char>(c))) {
            if (is_open)
                words.push_back(word);
            word.clear();
            is_open = false;
        } else {
            word += c;
            is_open = true;
        }
    }
    if (is_open)
        words.push_back(word);
    return words;
}

class Reader {
  public:
    Request read(const std::vector<std::string> &words) {
        read_words(words, 0);
        request.links = has_linked_input && !ends_before_link && !only_inputs;
        // Words may have gone into the response file that Clang reads.
        request.include_at = std::min(request.include_at, for_clang.size());
        for (const OwnOption &own : own_options)
            if (own.options == &Request::ido_options && (request.ido_options & own.bit) &&
                !request.has_sections())
                request.lacks_sections = own.name;
        if (!request.variables_file.empty() && !request.has_sections())
            request.lacks_sections = variables_option;
        if (!request.code_file.empty() && !request.has_sections())
            request.lacks_sections = code_option;
        return request;
    }

    // The words without the driver's own options.
    std::vector<std::string> for_clang;

  private:
    void read_words(const std::vector<std::string> &words, int nesting) {
        for (size_t i = 0; i < words.size(); i++) {
            const std::string &word = words[i];
            if (word.size() > 1 && word[0] == '@' && nesting < 16) {
                read_file(word, nesting);
                continue;
            }
            for_clang.push_back(word);
            if (is_value)
                read_value(word);
            else if (word.size() > 1 && word[0] == '-' && !only_inputs)
                read_option(word);
            else
                read_input(word);
        }
    }

    void read_file(const std::string &word, int nesting) {
        std::ifstream file(word.substr(1));
        size_t before = for_clang.size();
        unsigned own_before = own_count;
        if (file) {
            std::string text((std::istreambuf_iterator<char>(file)), {});
            read_words(split(text), nesting + 1);
        } else {
            read_input(word);
        }
        if (own_count > own_before)
            return;
        // Clang reads it itself.
        for_clang.resize(before);
        for_clang.push_back(word);
    }

    void read_option(const std::string &word) {
        option = word;
        if (word == "--")
            only_inputs = true;
        else if (word == "--help" || word == "-help")
            request.wants_help = true;
        else if (word == "--version")
            request.wants_version = true;
        else if (word == "--print-nvl-diagnostics")
            request.wants_nvl_diagnostics = true;
        else if (word == "--print-ido-diagnostics")
            request.wants_ido_diagnostics = true;
        else if (word == "-x")
            is_value = true;
        else if (word.rfind("-x", 0) == 0 && word.size() > 2)
            language = word.substr(2);
        else if (word == "-disable-llvm-passes" || word == "-disable-llvm-optzns")
            request.refused = word;
        else if (word.rfind(variables_option, 0) == 0) {
            request.variables_file = word.substr(sizeof variables_option - 1);
            for_clang.pop_back();
            own_count++;
        } else if (word.rfind(code_option, 0) == 0) {
            request.code_file = word.substr(sizeof code_option - 1);
            for_clang.pop_back();
            own_count++;
        } else if (const OwnOption *own = find_own(word)) {
            request.*own->options |= own->bit;
            for_clang.pop_back();
            own_count++;
        } else if (word == "-static")
            request.links_statically = true;
        else if (word == "-shared")
            request.links_shared = true;
        else if (contains(without_link, word))
            ends_before_link = true;
        else
            is_value = contains(with_value, word);
    }

    void read_value(const std::string &word) {
        is_value = false;
        if (option == "-x")
            language = word;
        if (option == "-include" && !has_include) {
            has_include = true;
            if (is_precompiled(word))
                request.include_at = for_clang.size();
        }
        if (option == "-Xclang" &&
            (word == "-disable-llvm-passes" || word == "-disable-llvm-optzns"))
            request.refused = "-Xclang " + word;
    }

    void read_input(const std::string &word) {
        if (!language.empty() && language != "none") {
            bool is_source = language != "ir" && language != "assembler";
            request.has_intermediate_code |= language == "ir";
            request.has_source |= is_source;
            request.has_includes |= is_source && language.find("cpp-output") == std::string::npos;
            has_linked_input |= language.find("header") == std::string::npos;
            return;
        }
        bool is_header = contains(header_endings, word.substr(word.rfind('.') + 1));
        has_linked_input |= !is_header;
        size_t dot = word.rfind('.');
        size_t slash = word.rfind('/');
        if (dot == std::string::npos || (slash != std::string::npos && dot < slash))
            return;
        std::string ending = word.substr(dot + 1);
        bool is_preprocessed = contains(preprocessed_endings, ending);
        bool is_source = contains(source_endings, ending);
        request.has_source |= is_source || is_preprocessed;
        request.has_includes |= is_source;
        request.has_intermediate_code |= contains(intermediate_endings, ending);
    }

    Request request;
    std::string option;
    std::string language;
    unsigned own_count = 0;
    bool is_value = false;
    bool only_inputs = false;
    bool has_include = false;
    bool has_linked_input = false;
    bool ends_before_link = false;
};

} // namespace

Request read_arguments(std::vector<std::string> &arguments) {
    Reader reader;
    Request request = reader.read(arguments);
    arguments = reader.for_clang;
    return request;
}
