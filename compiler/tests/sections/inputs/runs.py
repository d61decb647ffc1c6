#!/usr/bin/env python3
"""Runs a program several times with a heap of its own, as DURUM_HEAP or as its first argument; then comes the number of the run, from 0 on."""

import argparse
import os
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("program")
parser.add_argument("--argument", action="store_true", help="the heap is the argument, or else in the environment")
parser.add_argument("--runs", type=int, default=3)
arguments = parser.parse_args()

with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
    heap = os.path.join(directory, "heap")
    environment = os.environ if arguments.argument else os.environ | {"DURUM_HEAP": heap}
    for run in range(arguments.runs):
        done = subprocess.run([arguments.program, heap if arguments.argument else "-", str(run)], env=environment)
        if done.returncode:
            sys.exit(f"run {run}: status {done.returncode}")
