#!/usr/bin/env python3
"""How fast the durable programs of examples/locks are, beside the plain ones in the same run, in turns:

    compare.py DURUMCC [--quick]

The cache over a loopback connection with one request at a time, and by its functions in one process; the store for one
thread. Each answer is checked. Heaps are made in /dev/shm. A ratio is the median of plain divided by that of durable.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[2] / "examples" / "locks"
INCLUDE = HERE.parents[2] / "crates" / "durum-capi" / "include"
SIDES = ["plain", "durable"]
CACHE = ["cache", "table", "lru", "slabs", "stats", "text"]


def run(command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **more).stdout


def build(durumcc, directory):
    run([EXAMPLES / "durable.sh", durumcc, directory / "durable", "-O2"])
    (directory / "plain").mkdir()
    clang = ["clang-19", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    run([*clang, *sorted((EXAMPLES / "cache").glob("*.c")), "-o", directory / "plain" / "cache", "-pthread"])
    run([*clang, *sorted((EXAMPLES / "store").glob("*.c")), "-o", directory / "plain" / "store", "-lm"])
    run([*clang, HERE / "ask.c", "-o", directory / "ask"])
    files = [EXAMPLES / "cache" / f"{name}.c" for name in CACHE]
    run([*clang, f"-I{EXAMPLES / 'cache'}", HERE / "inside.c", *files, "-o", directory / "plain" / "inside", "-pthread"])
    source = directory / "durable" / "source" / "cache"
    compiled = [directory / "durable" / "cache.o" / f"{name}.c.o" for name in CACHE]
    run([durumcc, "-fido", "-O2", "-std=gnu11", "-DDURABLE", f"-I{source}", f"-I{INCLUDE}", "-c", HERE / "inside.c", "-o",
         directory / "durable" / "inside.o"])
    run([durumcc, directory / "durable" / "inside.o", *compiled, "-o", directory / "durable" / "inside", "-pthread"])


class Sides:
    """Programs of both sides, and heaps that are made anew for each run."""

    def __init__(self, directory, heaps):
        self.directory, self.heaps = directory, heaps

    def heap(self):
        shutil.rmtree(self.heaps, ignore_errors=True)
        self.heaps.mkdir()
        return self.heaps / "heap"

    def loopback(self, side, operations, sets):
        more = ["-d", self.heap()] if side == "durable" else []
        command = [str(part) for part in [self.directory / side / "cache", "-p", 0, "-t", 1, "-m", 64, *more]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                port = server.stdout.readline().split()[1]
                return float(run([self.directory / "ask", port, operations, sets]))
            finally:
                server.terminate()

    def inside(self, side, operations, sets):
        more = [self.heap()] if side == "durable" else []
        told = run([self.directory / side / "inside", operations, sets, *more]).split()
        if side == "durable":
            self.fences = [float(number) for number in told[1:]]
        return float(told[0])

    def store(self, side, operations, keys):
        environment = {"DURUM_HEAP": str(self.heap())} if side == "durable" else {}
        return 1e9 / float(run([self.directory / side / "store", keys, operations], env=os.environ | environment).split()[0])


def compare(name, rounds, measure):
    times = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            times[side].append(measure(side))
    plain, durable = (statistics.median(times[side]) for side in SIDES)
    print(f"{name:44}{plain:10.0f}{durable:10.0f}{plain / durable:8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("durumcc", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="the least work, for tests")
    arguments = parser.parse_args()
    # Where its library is, if that is a shared one.
    os.environ["LD_LIBRARY_PATH"] = str(arguments.durumcc.resolve().parents[1] / "lib")
    rounds, scale = (1, 100) if arguments.quick else (7, 1)
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory(dir="/dev/shm") as heaps:
        build(arguments.durumcc.resolve(), pathlib.Path(directory))
        sides = Sides(pathlib.Path(directory), pathlib.Path(heaps) / "heaps")
        print(f"{'':44}{'plain, ns':>10}{'durable':>10}{'ratio':>8}")
        for sets in [50, 10]:
            compare(f"cache on loopback, {sets} % sets", rounds,
                    lambda side: sides.loopback(side, 100_000 // scale, sets))
        for sets in [50, 10]:
            compare(f"cache in one process, {sets} % sets", rounds,
                    lambda side: sides.inside(side, 200_000 // scale, sets))
        print(f"    fences of a set {sides.fences[0]:.2f}, of a get {sides.fences[1]:.2f}")
        for keys in [10_000, 100_000, 1_000_000][:1 if arguments.quick else 3]:
            compare(f"store for one thread, {keys} keys, 80 % gets", rounds,
                    lambda side: sides.store(side, 1_000_000 // scale, keys))


main()
