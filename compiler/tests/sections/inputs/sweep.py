#!/usr/bin/env python3
"""Crashes a program of compiled sections at its events, completes what it left, and looks at what is there.

The memory is simulated: the runtime is that of runtime.c and sweep.c. --omit gives the passes something that they leave out, --fault the runtime: then some
crash has to be noticed at one of the levels.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

INPUTS = pathlib.Path(__file__).parent
# What compiles, or runs without a crash, takes a few.
SECONDS_MAX = 300


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--durumcc", required=True, metavar="PATH", help="with durumc++ and the simulated runtime beside it")
    parser.add_argument("--front-end", required=True, metavar="PATH", help="the same without passes")
    parser.add_argument("--passes", required=True, metavar="PATH", help="durumcc-passes.so")
    parser.add_argument("--llvm", required=True, type=pathlib.Path, metavar="DIR", help="where clang and opt are")
    parser.add_argument("--levels", default="-O2", help="of optimization, in one word")
    parser.add_argument("--stride", type=int, default=1, metavar="N", help="crash at every Nth event (1)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="crashes at each of them (1)")
    parser.add_argument("--omit", metavar="WORDS", help="leave-out=N, one-turn, ask-again, atomic-words")
    parser.add_argument("--fault", metavar="WORD", help="of runtime.c")
    return parser.parse_args()


def make(*command):
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(words)}\ncomes to no end in {SECONDS_MAX} s")
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr[:4000]}")
    return done.stdout


def compile_source(arguments, level, directory):
    """The program with its sections, and the plain one."""
    durumcc, front_end = arguments.durumcc, arguments.front_end
    if arguments.source.suffix == ".cpp":
        durumcc, front_end = durumcc[:-1] + "++", front_end[:-1] + "++"
    options = (*level.split(), "-Wall", "-Wextra", "-Werror", f"-I{INPUTS}")
    sections, plain = directory / "sections", directory / "plain"
    if arguments.omit:
        # What has been cut on purpose is cut in the code that the optimizer leaves.
        code, compiled = directory / "code.ll", directory / "sections.o"
        make(front_end, *options, "-fido", "-S", "-emit-llvm", arguments.source, "-o", code)
        make(arguments.llvm / "opt", f"-load-pass-plugin={arguments.passes}", f"-passes=ido-begin,ido-end<{arguments.omit}>,verify", code, "-o", code)
        make(arguments.llvm / "clang", level.split()[0], "-x", "ir", "-c", code, "-o", compiled)
        make(durumcc, compiled, "-o", sections)
    else:
        make(durumcc, *options, "-fido", arguments.source, "-o", sections)
    make(durumcc, *options, arguments.source, "-o", plain)
    return sections, plain


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
