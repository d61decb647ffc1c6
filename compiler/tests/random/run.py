#!/usr/bin/env python3
"""Compares random programs with their data in NVM with the same ones in ordinary memory, run through and killed.

For each seed the program is made and compiled plainly and by durumcc in several ways, each called a variant, such as
O2-parts-relaxed: a level of optimization; `none`, `parts` or `whole` for the transactions (inputs/bindings.h); -fnvl-relaxed; and
one of g, native, lto, unchecked, uncounted, unclaused for further options. All have to print the same, also those that are killed
and started again. A failure is told with a command that repeats it; add --reduce to that one for a smaller program.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shlex
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from randomc import variants
from randomc.command import add_size, numbers, options_of, size_of, text_of
from randomc.program import Program
from randomc.reduce import reduce
from randomc.runs import Failure, Tools, check


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=int, default=1, metavar="SEED", help="the first seed (1)")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="how many (10)")
    parser.add_argument("--durumcc", default="durumcc", metavar="PATH", help="an installed one, with libdurum beside it")
    parser.add_argument("--clang", default="clang-19", metavar="PATH", help="the plain compiler")
    parser.add_argument("--variants", default="some", metavar="LIST", help="some: four for each seed, all, or names with commas")
    parser.add_argument("--kills", type=int, default=8, metavar="N", help="how often a run is killed (8)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="seeds at a time (as many as processors)")
    parser.add_argument("--sanitize", action="store_true", help="also run the plain program with sanitizers")
    parser.add_argument("--reduce", action="store_true", help="print what a failing program needs to fail")
    parser.add_argument("--without", type=numbers, default=frozenset(), metavar="1,4-9", help="leave out these statements")
    parser.add_argument("--spoil", default="", metavar="NAME:N",
                        help="leave out every Nth call of __nvl_NAME, log or persist: all programs have to fail")
    add_size(parser)
    return parser.parse_args()


def variants_of(arguments, seed):
    if arguments.variants == "some":
        return variants.some(seed)
    if arguments.variants == "all":
        return variants.ALL
    return [variants.Variant.parse(name) for name in arguments.variants.split(",")]


def command(arguments, seed, failure):
    """Repeats a failure."""
    names = failure.variant.name if failure.variant else arguments.variants
    words = [sys.argv[0], "--start", seed, "--seeds", 1, "--variants", names, "--kills", arguments.kills,
             "--durumcc", arguments.durumcc, "--clang", arguments.clang, *options_of(size_of(arguments))]
    if arguments.without:
        words += ["--without", text_of(arguments.without)]
    if arguments.spoil:
        words += ["--spoil", arguments.spoil]
    if arguments.sanitize:
        words.append("--sanitize")
    return shlex.join(str(word) for word in words)


def one(arguments, tools, seed):
    """The Failure of a seed, or None."""
    program = Program(seed, size_of(arguments))
    try:
        check(tools, program, variants_of(arguments, seed), arguments.kills, arguments.sanitize, arguments.without)
    except Failure as failure:
        return failure
    return None


def tell(arguments, tools, seed, failure):
    name = f" {failure.variant.name}" if failure.variant else ""
    print(f"seed {seed}{name}, {variants.engine(seed)}: {failure.details}", flush=True)
    print(f"  again: {command(arguments, seed, failure)}", flush=True)
    if arguments.reduce:
        program = Program(seed, size_of(arguments))
        without = reduce(tools, program, failure, arguments.kills, lambda text: print(f"  {text}", file=sys.stderr, flush=True))
        print(f"  reduced: --without {text_of(without)}\n{program.text(without)}", flush=True)


def main():
    arguments = parse()
    durumcc = shutil.which(arguments.durumcc)
    if not durumcc:
        sys.exit(f"{arguments.durumcc}: there is no such compiler")
    begun = time.monotonic()
    seeds = range(arguments.start, arguments.start + arguments.seeds)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="durum-random-", dir="/dev/shm") as scratch:
        tools = Tools(durumcc, arguments.clang, arguments.spoil, pathlib.Path(scratch))
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for seed, failure in zip(seeds, pool.map(lambda seed: one(arguments, tools, seed), seeds)):
                failed += failure is not None
                if failure and not arguments.spoil:
                    tell(arguments, tools, seed, failure)
                elif arguments.spoil and not failure:
                    print(f"seed {seed}: nobody has noticed what {arguments.spoil} leaves out", flush=True)
    print(f"{len(seeds)} programs from seed {arguments.start}: {failed} failed, {time.monotonic() - begun:.0f} s")
    sys.exit(failed != (len(seeds) if arguments.spoil else 0))


if __name__ == "__main__":
    main()
