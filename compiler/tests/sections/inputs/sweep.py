#!/usr/bin/env python3
"""Crashes a program of compiled sections at its events, completes what it left, and looks at what is there.

The memory is simulated (runtime.c, sweep.c). --omit gives the passes something that they leave out, --fault the runtime: then some
crash has to be noticed at one of the levels.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

INPUTS = pathlib.Path(__file__).parent


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--clang", required=True, metavar="PATH", help="with opt beside it")
    parser.add_argument("--passes", required=True, metavar="PATH", help="durumcc-passes.so")
    parser.add_argument("--levels", default="-O2", help="of optimization, in one word")
    parser.add_argument("--stride", type=int, default=1, metavar="N", help="crash at every Nth event (1)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="crashes at each of them (1)")
    parser.add_argument("--omit", metavar="WORDS", help="leave-out=N, one-turn")
    parser.add_argument("--fault", metavar="WORD", help="of runtime.c")
    return parser.parse_args()


def make(*command):
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr[:4000]}")
    return done.stdout


def compile_source(arguments, level, directory):
    """The program with its sections, and the plain one."""
    clang, passes = arguments.clang, f"-fpass-plugin={arguments.passes}"
    if arguments.source.suffix == ".cpp":
        clang += "++"
    warnings = ("-Wall", "-Wextra", "-Werror", f"-I{INPUTS}")
    # What has been cut on purpose is cut in the code that the optimizer leaves.
    code, sections = directory / "code.bc", directory / "sections.o"
    marked = (clang, *level.split(), *warnings, "-include", INPUTS / "mark.h", "-c", arguments.source)
    if arguments.omit:
        make(*marked, "-emit-llvm", "-o", code)
        opt = pathlib.Path(arguments.clang).with_name("opt")
        make(opt, f"-load-pass-plugin={arguments.passes}", f"-passes=ido-end<{arguments.omit}>,verify", code, "-o", code)
        make(clang, level.split()[0], "-c", code, "-o", sections)
    else:
        make(*marked, passes, "-o", sections)
    others = [directory / f"{name}.o" for name in ("runtime", "sweep")]
    for other in others:
        make(arguments.clang, "-O2", *warnings, "-c", INPUTS / f"{other.stem}.c", "-o", other)
    make(clang, sections, *others, "-o", directory / "sections", "-lpthread")
    make(clang, *level.split(), *warnings, arguments.source, *others, "-o", directory / "plain", "-lpthread")
    return directory / "sections", directory / "plain"


def fails(arguments, level, directory):
    program, plain = compile_source(arguments, level, directory)
    digests, image = directory / "digests", directory / "image"
    digests.write_text(make(plain, "digests", image))
    if make(program, "digests", image) != digests.read_text():
        print(f"{level}: sections do something else without a crash")
        return True
    fault = {"FAULT": arguments.fault} if arguments.fault else {}
    command = [program, "sweep", digests, image, str(arguments.stride), str(arguments.seeds)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | fault)
    print(f"{level}:\n{done.stdout}", end="", flush=True)
    if done.returncode:
        print(done.stderr[:300])
    return done.returncode != 0


def main():
    arguments = parse()
    has_to_fail = bool(arguments.omit or arguments.fault)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        failures = (fails(arguments, level, pathlib.Path(directory)) for level in arguments.levels.split(","))
        failed = any(failures)
    sys.exit(failed != has_to_fail)


if __name__ == "__main__":
    main()
