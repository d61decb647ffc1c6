#!/usr/bin/env python3
"""How long it takes to open a heap whose program was killed with eight threads in sections, by how long it has worked and
by how large the heap is:

    recovery.py DURUMCC DURUM [--quick]

A heap that was closed in order is opened in between: what an opening takes without sections. Milliseconds, medians. The
heap is checked each time.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


class Program:
    def __init__(self, durumcc, durum, directory, heap):
        self.path, self.durum, self.heap = directory / "sections", durum, heap
        subprocess.run([durumcc, "-fido", "-O2", HERE / "sections.c", "-o", self.path], check=True)

    def killed_after(self, seconds, mib):
        """Works for a time, and is killed. How many sections it was in."""
        with subprocess.Popen([self.path, self.heap, "work", str(mib)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "works\n"
            time.sleep(seconds)
            process.kill()
        told = subprocess.run([self.durum, "ls", "--json", self.heap], capture_output=True, text=True)
        pools = json.loads(told.stdout)["pools"]
        return sum(client["sections"] for pool in pools for client in pool["interrupted"])

    def opened(self):
        """Milliseconds of an opening, which completes what is interrupted."""
        told = subprocess.run([self.path, self.heap], check=True, capture_output=True, text=True)
        return float(told.stdout) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("durumcc", type=pathlib.Path)
    parser.add_argument("durum", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="the least work, for tests")
    arguments = parser.parse_args()
    # Where its library is, if that is a shared one.
    os.environ["LD_LIBRARY_PATH"] = str(arguments.durumcc.resolve().parents[1] / "lib")
    cases = [(1, 64, 9), (10, 64, 3), (50, 64, 3), (1, 1024, 9)]
    if arguments.quick:
        cases = [(0.1, 64, 1)]
    print(f"{'worked, s':>10}{'heap, MiB':>11}{'sections':>10}{'opened, ms':>12}{'without':>9}")
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory(dir="/dev/shm") as heaps:
        heap = pathlib.Path(heaps) / "heap"
        program = Program(arguments.durumcc, arguments.durum, pathlib.Path(directory), heap)
        for seconds, mib, rounds in cases:
            shutil.rmtree(heap, ignore_errors=True)
            sections, interrupted, whole = [], [], []
            for _ in range(rounds):
                sections.append(program.killed_after(seconds, mib))
                interrupted.append(program.opened())
                whole.append(program.opened())
            print(f"{seconds:10}{mib:11}{statistics.median(sections):10.0f}{statistics.median(interrupted):12.2f}"
                  f"{statistics.median(whole):9.2f}", flush=True)


main()
