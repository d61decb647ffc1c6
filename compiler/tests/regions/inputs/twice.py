#!/usr/bin/env python3
"""Compares plain programs in C with themselves when each of their regions is done two times (passes/ido/twice.h).

Programs are the sources that are named, or random ones (tests/random) by their seeds. Each is compiled at each level. With
--leave-out N every Nth pair of a read and an overwrite stays in one region: then each program has to do something else,
at some level.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

TESTS = pathlib.Path(__file__).parents[2]
RANDOM = TESTS / "random"
sys.path.insert(0, str(RANDOM))

from randomc.program import Program, Size  # noqa: E402
from randomc.variants import COMMON  # noqa: E402

SECONDS_MAX = 20
# Without optimization all locals are memory, with it loops are vectors.
LEVELS = ("-O0 -Xclang -disable-O0-optnone", "-O1", "-O2", "-O3 -mavx2")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--clang", required=True, metavar="PATH", help="with opt beside it")
    parser.add_argument("--passes", required=True, metavar="PATH", help="durumcc-passes.so")
    parser.add_argument("--everywhere", action="store_true", help="as if each function was called in a section")
    parser.add_argument("--leave-out", type=int, default=0, metavar="N")
    parser.add_argument("--start", type=int, default=1, metavar="SEED", help="the first seed (1)")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="how many random programs (0)")
    return parser.parse_args()


def run(command):
    """How it ended, and what it printed. One that does not end has done something else as well."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return "it has not ended"
    return done.returncode, done.stdout


def make(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(str(word) for word in command)}\n{done.stderr[:4000]}")


class Twice:
    def __init__(self, arguments, directory):
        self.arguments, self.directory = arguments, directory
        words = ["everywhere"] * arguments.everywhere + [f"leave-out={arguments.leave_out}"] * bool(arguments.leave_out)
        self.name = f"regions-twice<{';'.join(words)}>" if words else "regions-twice"

    def compile(self, *words):
        make([self.arguments.clang, *COMMON, "-DPLAIN", f"-I{RANDOM / 'inputs'}", *words])

    def levels_that_differ(self, source):
        plain = self.directory / "plain"
        self.compile("-O1", source, "-o", plain, "-lpthread")
        expected = run([plain])
        return (level for level in LEVELS if run([self.doubled(source, level)]) != expected)

    def doubled(self, source, level):
        code, doubled, program = (self.directory / name for name in ("code.bc", "doubled.bc", "doubled"))
        self.compile(*level.split(), "-c", "-emit-llvm", source, "-o", code)
        opt = pathlib.Path(self.arguments.clang).with_name("opt")
        make([opt, f"-load-pass-plugin={self.arguments.passes}", f"-passes={self.name},verify", code, "-o", doubled])
        # The ways between regions are many, and the optimizer follows all of them.
        self.compile("-O0", doubled, "-o", program, "-lpthread")
        return program


def sources_of(arguments, directory):
    yield from arguments.sources
    for seed in range(arguments.start, arguments.start + arguments.seeds):
        source = directory / f"seed-{seed}.c"
        source.write_text(Program(seed, Size()).text(frozenset()))
        yield source


def main():
    arguments = parse()
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        twice = Twice(arguments, directory)
        for source in sources_of(arguments, directory):
            # The first one is enough to know.
            different = next(twice.levels_that_differ(source), None)
            failed += bool(different) != bool(arguments.leave_out)
            said = f"does something else at {different}" if different else "does the same at each level"
            print(f"{source.name}: {said}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
