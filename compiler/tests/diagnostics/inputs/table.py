#!/usr/bin/env python3
"""Compares the table in docs/tutorials/nvl-c.md with `durumcc --print-nvl-diagnostics`. With --write it writes the table.

Of these messages and of those of `--print-ido-diagnostics`, each has to be expected by a test."""

import pathlib
import re
import subprocess
import sys

durumcc, repository = sys.argv[1], pathlib.Path(sys.argv[2])
document = repository / "docs" / "tutorials" / "nvl-c.md"
begin, end = "<!-- messages: begin -->\n", "<!-- messages: end -->\n"


def listed(language):
    printed = subprocess.run([durumcc, f"--print-{language}-diagnostics"], check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in printed.splitlines()]


messages = listed("nvl")
rows = ["| id | message | what to do |\n", "| --- | --- | --- |\n"]
for name, text, cure in messages:
    text = re.sub(r"%\d", "…", text).replace("|", "\\|")
    rows.append(f"| `{name}` | {text} | {cure} |\n")

before, rest = document.read_text().split(begin)
table, after = rest.split(end)
if sys.argv[3:] == ["--write"]:
    document.write_text(before + begin + "".join(rows) + end + after)
elif table != "".join(rows):
    sys.exit("docs/tutorials/nvl-c.md: the table differs from the compiler's list; mend it with table.py DURUMCC REPOSITORY --write")

messages += listed("ido")
tests = pathlib.Path(__file__).parents[2]
expected = "".join(path.read_text() for path in tests.rglob("*") if path.suffix in (".c", ".cpp", ".test"))
missing = [name for name, _, _ in messages if f"[{name}]" not in expected]
if missing:
    sys.exit("no test expects " + ", ".join(missing))
if len({name for name, _, _ in messages}) != len(messages):
    sys.exit("an id stands for two messages")
