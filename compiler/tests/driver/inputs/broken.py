#!/usr/bin/env python3
"""Breaks the programs of these tests at random and compiles what is left: broken.py DURUMCC SCRATCH SEED COUNT.

A program that crashes the compiler is kept in SCRATCH."""

import pathlib
import random
import re
import subprocess
import sys

durumcc, scratch, seed, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
scratch.mkdir(parents=True, exist_ok=True)
draw = random.Random(seed)
programs = sorted((pathlib.Path(__file__).parents[2]).glob("*/*.c"))
words = ["nvl ", "nvl_wp ", "*", "&", " struct ", "(", ")", "{", "}", ";", "void ", "[3]", " union ", " static ",
         " return ", " if ", " else ", "...", "\n#pragma nvl atomic heap(h)\n", "\n#pragma nvl atomic heap(h) backup(p[0:1])\n"]
# Clang's own: a pointer in another address space, initialized with a function.
known = "DiagnoseAssignmentResult"


def broken(text):
    tokens = re.findall(r"\s+|\w+|[^\w\s]", re.sub(r"//.*", "", text))
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(tokens))
        kind = draw.random()
        if kind < 0.35:
            del tokens[at]
        elif kind < 0.5:
            tokens.insert(at, draw.choice(tokens))
        elif kind < 0.55:
            del tokens[at:]
        elif kind < 0.65:
            other = draw.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] = draw.choice(words)
        if not tokens:
            break
    return "".join(tokens)


crashes = []
for number in range(count):
    program = draw.choice(programs)
    file = scratch / f"{seed}-{number}.c"
    file.write_text(broken(program.read_text()))
    run = subprocess.run([durumcc, "-w", "-fopenmp", "-S", "-emit-llvm", "-o", "/dev/null", file],
                         capture_output=True, text=True, timeout=60, check=False)
    if run.returncode not in (0, 1) or ("PLEASE submit a bug report" in run.stderr and known not in run.stderr):
        crashes.append(f"{file} (from {program.name})")
    else:
        file.unlink()
if crashes:
    sys.exit("the compiler crashed at " + ", ".join(crashes))
