#!/usr/bin/env python3
"""How long durumcc -fido compiles, and how much code it makes, beside Clang in the same run: files of about 5,000 lines,
which are the programs of examples/locks again and again with other names. `server` is the cache, of which a part is in
sections; `dense` are the structures, which are sections and little else.

    bench/locks/compile.py DURUMCC [-O0 ...]       the least processor time of a few rounds; -O2, if no level is told
"""
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

LINES_MIN = 5000
ROUNDS = 5
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "locks"
# Each folder's files, where functions are defined before other files call them.
PROGRAMS = {
    "server": ("cache", ["text", "item", "slabs", "lru", "table", "stats", "cache", "reply", "protocol"]),
    "dense": ("structures", ["stack", "queue", "list", "map"]),
}
TYPE = re.compile(r"^(?:struct|enum|union)(?: \w+)? \{.*?\};\n|^#define [^\n]*\n", re.M | re.S)
FUNCTION = re.compile(r"^[a-z][\w *]*?\b(\w+)\([^;{}]*\) \{", re.M)
PROTOTYPE = re.compile(r"^(?!static|typedef|extern)[a-z][^;{}#]*\([^;{}]*\);", re.M)
# Of a file: `static size_t page_count, page_count_max;`, `static const char usage[] = ...`, and names of counters.
VARIABLES = re.compile(r"^(?:static|const char \*const) [^({]*?(?=;| = )", re.M)
LASTS = re.compile(r"^static (?!const|pthread_mutex_t|_Atomic|atomic)(?=[^({]*?(?:\[[^\]]*\])?(?:;| = [^{]))", re.M)


def names_of(text):
    variables = (re.sub(r"\[[^\]]*\]", "", part) for one in VARIABLES.findall(text) for part in one.split(","))
    return set(FUNCTION.findall(text)) | {re.findall(r"\w+", variable)[-1] for variable in variables}


def renamed(text, names, suffix):
    # Not members, and not what a conditional or a label has in front of a colon.
    return re.sub(r"(?<![.>])\b\w+\b(?!\s*: )", lambda word: word[0] + suffix if word[0] in names else word[0], text)


def written(folder, files):
    """Types come once, functions and variables in each copy; variables last, so that sections may use them."""
    system, types, copy, names = set(), "", "", set()
    for number, name in enumerate(files):
        header = re.sub(r"/\*.*?\*/", "", (EXAMPLES / folder / f"{name}.h").read_text(), flags=re.S)
        copy += "\n".join(PROTOTYPE.findall(header)) + "\n"
        source = EXAMPLES / folder / f"{name}.c"
        if not source.exists():
            continue
        text = source.read_text()
        system |= set(re.findall(r"#include <.*>", text))
        text = re.sub(r"^#include.*\n", "", text, flags=re.M)
        types += "".join(TYPE.findall(text))
        text = TYPE.sub("", text)
        public = set(FUNCTION.findall(re.sub(r"^static .*", "", text, flags=re.M)))
        own = names_of(text) - public
        copy += renamed(LASTS.sub("static DURABLE ", text), own, f"_{name}")
        names |= public | {one + f"_{name}" for one in own}
    result = ['#define DURABLE __attribute__((annotate("durum_durable")))', "#define _GNU_SOURCE", *sorted(system)]
    result = "\n".join(result + [f'#include "{name}.h"' for name in files]) + "\n" + types
    number = 0
    while result.count("\n") < LINES_MIN:
        result += renamed(copy, names, f"_{number}")
        number += 1
    return result


def seconds(command):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run(command, check=True)
    return used() - before


def code_size(compiled):
    lines = subprocess.run(["size", compiled], check=True, capture_output=True, text=True).stdout.split("\n")
    return int(lines[1].split()[0])


def main(durumcc, levels):
    sides = {"clang": ["clang-19"], "-fido": [durumcc, "-fido"], "-fido -fido-outside": [durumcc, "-fido", "-fido-outside"]}
    with tempfile.TemporaryDirectory() as directory:
        compiled = pathlib.Path(directory, "compiled.o")
        for program, (folder, files) in PROGRAMS.items():
            source = pathlib.Path(directory, f"{program}.c")
            source.write_text(written(folder, files))
            for level in levels:
                times, sizes = {}, {}
                for _ in range(ROUNDS):
                    for side, command in sides.items():
                        options = [level, "-std=gnu11", "-w", f"-I{EXAMPLES / folder}", "-c", source, "-o", compiled]
                        times[side] = min(times.get(side, 1e9), seconds(command + options))
                        sizes[side] = code_size(compiled)
                print(f"{program} of {source.read_text().count(chr(10))} lines at {level}")
                for side in sides:
                    print(f"    {side:22}{times[side]:6.2f} s {times[side] / times['clang']:5.2f}"
                          f"{sizes[side] / 1024:8.0f} KiB {sizes[side] / sizes['clang']:5.2f}", flush=True)


if len(sys.argv) < 2:
    sys.exit(__doc__)
main(sys.argv[1], sys.argv[2:] or ["-O2"])
