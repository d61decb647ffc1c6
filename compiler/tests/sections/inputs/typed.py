#!/usr/bin/env python3
"""What tools say of the heap of typed.c, which the program PROGRAM makes; CHANGED is one with another type."""

import os
import subprocess
import sys
import tempfile
import time

durum, program, changed = sys.argv[1:]


def run(*command, **how):
    return subprocess.run(command, capture_output=True, text=True, **how)


def expect(done, *texts, status=0):
    said = done.stdout + done.stderr
    if done.returncode != status or any(text not in said for text in texts):
        sys.exit(f"{' '.join(done.args)}: status {done.returncode}, expected {status} and {texts}:\n{said}")


def expect_whole(heap, *texts):
    expect(run(program, "build"))
    expect(run(durum, "check", heap), "no leaks", "sound", *texts)


with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
    heap = os.path.join(directory, "heap")
    copy = os.path.join(directory, "copy")
    os.environ["DURUM_HEAP"] = heap
    expect_whole(heap)
    expect(run(durum, "inspect", heap, "heap", "--raw"), "root: -> #2 all at", "list: -> #3 node at", "name: -> #10 i8 at",
           "any: -> #", " i64 at", "nodes: [3]")

    # A crash, and a collection that frees what it has lost and nothing else.
    if run(program, "leak").returncode != -6:
        sys.exit("the program did not abort")
    expect(run(durum, "check", heap), "2 objects (48 B) that nothing leads to", "16 bytes and type i8",
           "32 bytes and type node")
    expect(run(durum, "recover", heap))
    expect(run(durum, "gc", heap), "freed 2 objects (48 B)")
    expect_whole(heap)
    expect(run(durum, "gc", heap), "nothing to free")

    # Sections that are killed lose nothing, and what was free before looks like no pointer.
    for kill in range(8):
        running = subprocess.Popen([program, "churn"])
        time.sleep(0.05)
        running.kill()
        running.wait()
        expect(run(program, "completed"))
        expect(run(durum, "check", heap), "no leaks", "sound")

    # Elsewhere the same.
    expect(run(durum, "recover", heap))
    expect(run(durum, "clone", heap, copy))
    expect(run(durum, "check", copy), "no leaks", "sound")
    expect(run(program, "completed", env=os.environ | {"DURUM_HEAP": copy}))

    # Another type under the same names.
    expect(run(changed, "build"), "the root of the heap has another type than in this program", status=-6)

    # What is not known is not freed.
    expect(run(program, "either"))
    expect(run(durum, "recover", heap))
    expect(run(durum, "gc", heap), "nothing to free")
    if run(program, "leak").returncode != -6:
        sys.exit("the program did not abort")
    expect(run(durum, "recover", heap))
    expect(run(durum, "gc", heap), "the root leads to objects without a type, which may hold pointers", status=2)
    expect(run(program, "completed"))

    # Addresses of the program.
    expect(run(program, "astray"))
    expect(run(durum, "check", heap), "out of the store: a program has stored an address of its own", status=3)
