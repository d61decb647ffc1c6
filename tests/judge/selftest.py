#!/usr/bin/env python3
"""Tests the judge on programs of its own: right ones pass, each mistake is found. Prints `N passed, M failed`."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# Records of 8 bytes are appended to a file in a new directory, and each is acknowledged.
START = """
import mmap, os, sys
store = sys.argv[1]
def say(text): os.write(1, text.encode())
def sync_directory(path):
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
os.mkdir(store)
sync_directory(os.path.dirname(store))
"""
APPEND = START + """
file = os.open(store + "/log", os.O_RDWR | os.O_CREAT | os.O_EXCL)
sync_directory(store)
say("done a 0\\n")
for number in range(1, 9):
    say(f"begun a {number}\\n")
    os.pwrite(file, number.to_bytes(8, "little"), 8 * number)
    os.fdatasync(file)
    say(f"done a {number}\\n")
"""
APPEND_CHECK = """
import os, sys
if os.path.exists(sys.argv[1] + "/log"):
    data = open(sys.argv[1] + "/log", "rb").read()
    records = [int.from_bytes(data[at : at + 8], "little") for at in range(8, len(data), 8)]
    found = len([record for record in records if record])
    assert records[:found] == list(range(1, found + 1)), records
    print("holds a", found)
"""
# A file is replaced by a new one, again and again. The number stands in it twice, in different sectors.
REPLACE = START + """
say("begun a 1\\n")
for number in range(1, 7):
    say(f"begun a {number}\\n")
    file = os.open(store + "/new", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.pwrite(file, number.to_bytes(1, "little") * 700, 0)
    os.fdatasync(file)
    os.close(file)
    os.rename(store + "/new", store + "/current")
    sync_directory(store)
    say(f"done a {number}\\n")
"""
REPLACE_CHECK = """
import os, sys
if os.path.exists(sys.argv[1] + "/current"):
    data = open(sys.argv[1] + "/current", "rb").read()
    assert len(data) == 700 and set(data) == {data[0]} and data[0], "torn"
    print("holds a", data[0])
"""
# In place, without a copy to fall back to.
OVERWRITE = APPEND.replace("number.to_bytes(8, \"little\"), 8 * number", "number.to_bytes(1, \"little\") * 700, 0")
# An empty log is no mistake: only a mixture is, whichever moments are drawn.
OVERWRITE_CHECK = """
import os, sys
if os.path.exists(sys.argv[1] + "/log"):
    data = open(sys.argv[1] + "/log", "rb").read()
    assert len(set(data)) < 2 and len(data) in (0, 700), "torn"
    print("holds a", data[0] if data else 0)
"""
MAPPED = START + """
file = os.open(store + "/log", os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.ftruncate(file, 4096)
mmap.mmap(file, 4096)
"""

# name, program, check, code of the judge, what it says
CASES = [
    ("records appended and synced", APPEND, APPEND_CHECK, 0, ": 0 wrong"),
    ("no sync before it is said", APPEND.replace("    os.fdatasync(file)\n", ""), APPEND_CHECK, 1, "were acknowledged"),
    ("the file's name is not synced", APPEND.replace("sync_directory(store)\n", ""), APPEND_CHECK, 1, "-1 are there"),
    ("the directory's name is not synced", APPEND.replace("sync_directory(os.path.dirname(store))\n", ""),
     APPEND_CHECK, 1, "-1 are there"),
    ("said before it is begun", APPEND.replace("begun a {number}", "begun a 0"), APPEND_CHECK, 1, "were begun"),
    ("a file replaced by a new one", REPLACE, REPLACE_CHECK, 0, ": 0 wrong"),
    ("the new one is not synced", REPLACE.replace("    os.fdatasync(file)\n", ""), REPLACE_CHECK, 1, "torn"),
    ("its name is not synced", REPLACE.replace("    sync_directory(store)\n", ""),
     REPLACE_CHECK, 1, "were acknowledged"),
    ("two sectors in place", OVERWRITE, OVERWRITE_CHECK, 1, "torn"),
    ("stores to a shared mapping", MAPPED, APPEND_CHECK, 1, "shared mapping"),
    ("writes in a way unknown to the judge", APPEND.replace("os.pwrite(", "os.write(").replace(", 8 * number)", ")"),
     APPEND_CHECK, 1, "does not know"),
]


def judged(work, program, check):
    for name, text in (("program", program), ("check", check)):
        with open(os.path.join(work, name), "w", encoding="ascii") as file:
            file.write(text)
    python = f"{sys.executable} -S -E"
    command = [sys.executable, os.path.join(HERE, "judge.py"), "--work", os.path.join(work, "work"), "--images", "30"]
    command += ["--canaries", "1", "--then", f"{python} {work}/check {{store}}", "--"]
    command += python.split() + [f"{work}/program", "{store}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main():
    failed = 0
    for name, program, check, code, words in CASES:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
            ran = judged(work, program, check)
        if ran.returncode != code or words not in ran.stdout + ran.stderr:
            failed += 1
            print(f"{name}: the judge exits {ran.returncode}, not {code} with {words!r}:\n{ran.stdout}{ran.stderr}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
