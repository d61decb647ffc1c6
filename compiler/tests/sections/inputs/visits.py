#!/usr/bin/env python3
"""Runs the program of docs/tutorials/locks.md, kills it, and looks at what it has told of.

    visits.py PROGRAM
"""

import os
import random
import subprocess
import sys
import tempfile
import time

KILLS = 20


def run(program, heap, *words):
    done = subprocess.run([program, *words], env=os.environ | {"DURUM_HEAP": heap}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"it ends with {done.returncode}: {done.stderr}")
    return done.stdout.split("\n")


def main():
    program = sys.argv[1]
    random.seed(7)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        heap = os.path.join(directory, "visits")
        assert run(program, heap) == ["0 visits before", "visit 1", ""]
        assert run(program, heap) == ["1 visits before", "visit 2", ""]
        for _ in range(KILLS):
            running = subprocess.Popen([program, "for-ever"], env=os.environ | {"DURUM_HEAP": heap},
                                       stdout=subprocess.PIPE, text=True)
            running.stdout.readline()
            time.sleep(random.random() / 50)
            running.kill()
            # The last line may be cut.
            told = [line for line in running.stdout.read().split("\n")[:-1] if line.startswith("visit ")]
            running.wait()
            before = int(run(program, heap)[0].split()[0])
            if told and before < int(told[-1].split()[1]):
                sys.exit(f"{told[-1]} was told of, and {before} are there")
            if before < 0:
                sys.exit("a visit is missing")
    print(f"{KILLS} kills, {before} visits")


if __name__ == "__main__":
    main()
