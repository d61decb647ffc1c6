#!/usr/bin/env python3
"""Runs programs with a heap of their own, one several times, or each once: with the heap in DURUM_HEAP or as their first argument, and the number of the run."""

import argparse
import os
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("programs", nargs="+")
parser.add_argument("--argument", action="store_true", help="the heap is the argument, or else in the environment")
arguments = parser.parse_args()

with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
    heap = os.path.join(directory, "heap")
    environment = os.environ if arguments.argument else os.environ | {"DURUM_HEAP": heap}
    programs = arguments.programs if len(arguments.programs) > 1 else 3 * arguments.programs
    for run, program in enumerate(programs):
        done = subprocess.run([program, heap if arguments.argument else "-", str(run)], env=environment)
        if done.returncode:
            sys.exit(f"run {run}: status {done.returncode}")
