#!/usr/bin/env python3
"""clangd understands a program and its commands as docs/tutorials/nvl-c.md sets an editor up: no error, no warning, and members are completed."""

import json
import pathlib
import subprocess
import sys
import tempfile

prefix = pathlib.Path(sys.argv[1]).resolve()
program = pathlib.Path(__file__).parent / "plain-reading.c"
durumcc = str(prefix / "bin" / "durumcc")
clangd = ["clangd-19", "--background-index=false", f"--query-driver={durumcc}"]


def check(project, *files):
    for file in files:
        done = subprocess.run([*clangd, f"--check={project / file}", "--check-locations=0"], capture_output=True, text=True)
        if done.returncode or "All checks completed, 0 errors" not in done.stderr:
            sys.exit(f"clangd --check={file}:\n{done.stderr}")


def members(project):
    """What clangd offers behind `list->`."""
    text = program.read_text()
    before = text[: text.index("list->value++") + len("list->")]
    place = {"line": before.count("\n"), "character": len(before) - before.rindex("\n") - 1}
    uri = (project / "program.c").as_uri()
    messages = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "textDocument/didOpen", "params": {"textDocument": {"uri": uri, "languageId": "c", "version": 1, "text": text}}},
        {"id": 2, "method": "textDocument/completion", "params": {"textDocument": {"uri": uri}, "position": place}},
        {"id": 3, "method": "shutdown"},
        {"method": "exit"},
    ]
    lines = "\n---\n".join(json.dumps({"jsonrpc": "2.0", **message}) for message in messages)
    done = subprocess.run([*clangd, "-lit-test"], input=lines, capture_output=True, text=True)
    return [name for name in ("value", "next", "back", "row") if f'"filterText": "{name}"' in done.stdout]


with tempfile.TemporaryDirectory() as folder:
    project = pathlib.Path(folder).resolve()
    (project / "program.c").write_text(program.read_text())
    command = [durumcc, "-Wall", "-Wextra", "-Werror", "-fnvl-relaxed", "-c", "program.c"]
    (project / "compile_commands.json").write_text(json.dumps([{"directory": folder, "file": "program.c", "arguments": command}]))
    (project / ".clangd").write_text("CompileFlags:\n  Remove: [-fnvl-*]\n")
    check(project, "program.c")
    if (found := members(project)) != ["value", "next", "back", "row"]:
        sys.exit(f"clangd completes {found}")
