"""What a program does to files, seen from outside: its system calls, as strace records them.

A call has two moments, its begin and its end; those of several threads interleave. Text and paths come in
hexadecimal (-xx), file descriptors with the path that they have at that moment (-y).
"""

import re
import subprocess

# Longer strings than the program ever writes in one call; a cut one is an error all the same.
STRING_BYTES_MAX = 1 << 24
# All calls that take a descriptor or a path or change mappings, so that nothing goes past the judge. What is read
# stays undecoded.
TRACED = "trace=%desc,%file,%memory,sync,io_uring_setup,io_setup,chdir,fchdir"
UNDECODED = "raw=read,pread64,readv,preadv,preadv2,getdents64"

LINE = re.compile(r"(\d+) +(.*)", re.DOTALL)
RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
RESULT = re.compile(r"\) += (0x[0-9a-f]+|-?\d+|\?)")
DESCRIPTOR = re.compile(r"(-?\d+|AT_FDCWD)<([^>]*)>(\(deleted\))?")


class Surprise(Exception):
    """The program did something that the judge does not know: it could go past what the judge sees."""


class Call:
    """One system call. `result` is None until it ends."""

    __slots__ = ("name", "arguments", "result")

    def __init__(self, name, arguments, result=None):
        self.name = name
        self.arguments = arguments
        self.result = result

    def flags(self, index):
        return set(self.arguments[index].split("|"))

    def number(self, index):
        return int(self.arguments[index], 0)

    def bytes(self, index):
        return unquote(self.arguments[index])

    def vector(self, index):
        return b"".join(unquote(base) for base in re.findall(r'iov_base=("[^"]*"(?:\.\.\.)?)', self.arguments[index]))

    def descriptor(self, index):
        """Number and path of a descriptor, and whether its file has lost its name."""
        found = DESCRIPTOR.match(self.arguments[index])
        if not found:
            return None, None, False
        number, path, deleted = found.groups()
        return number, os_path(path), deleted is not None

    def path(self, index):
        """The path in an argument. It may be relative to the directory whose descriptor stands before it."""
        path = self.bytes(index).decode()
        if not path.startswith("/"):
            _, directory, _ = self.descriptor(index - 1) if index > 0 else (None, None, False)
            if directory is None:
                raise Surprise(f"{self.name} of the relative path {path!r}")
            path = f"{directory}/{path}" if path else directory
        return path

    def __str__(self):
        shown = ", ".join(short(argument) for argument in self.arguments)
        return f"{self.name}({shown}) = {self.result}"


def short(argument):
    found = DESCRIPTOR.match(argument)
    if found:
        return f"{found[1]}<{os_path(found[2])}>"
    if argument.startswith('"'):
        text = unquote(argument)
        return repr(text) if len(text) < 80 else f"{len(text)} bytes"
    return argument if len(argument) < 80 else argument[:77] + "..."


def unquote(argument):
    if not argument.startswith('"') or not argument.endswith('"'):
        raise Surprise(f"a string that strace did not record whole: {argument[:40]}...")
    return bytes.fromhex(argument[1:-1].replace("\\x", ""))


def os_path(text):
    return bytes.fromhex(text.replace("\\x", "")).decode() if text.startswith("\\x") else text


def record(command, trace):
    """Runs a command under strace, which writes to the file `trace`. How it ended, and what it said."""
    watch = ["strace", "-f", "-y", "-xx", "-s", str(STRING_BYTES_MAX), "-o", trace, "-e", TRACED, "-e", UNDECODED]
    command = watch + ["-e", "signal=none", "--"] + command
    return subprocess.run(command, capture_output=True, text=True, check=False)


def split(text):
    """The arguments at the top level of a call's text."""
    arguments, depth, start = [], 0, 0
    for found in re.finditer(r'[(\[{}\])]|, |"[^"]*"|<[^>]*>', text):
        mark = found[0]
        if mark in ("(", "[", "{"):
            depth += 1
        elif mark in (")", "]", "}"):
            depth -= 1
        elif mark == ", " and depth == 0:
            arguments.append(text[start : found.start()])
            start = found.end()
    return arguments + [text[start:]] if text else []


def parse(text):
    name, rest = text.split("(", 1)
    end = rest.rfind(") ")
    found = RESULT.match(rest, end) if end >= 0 else None
    if not found:
        raise Surprise(f"a line that is no call: {text[:200]}")
    result = None if found[1] == "?" else int(found[1], 0)
    return Call(name, split(rest[:end].rstrip()), result)


def read(trace):
    """The moments of all calls, in order: pairs of a call and whether it ends (it begins otherwise)."""
    moments, begun = [], {}
    with open(trace, encoding="ascii") as lines:
        for line in lines:
            pid, text = LINE.match(line.rstrip("\n")).groups()
            if text.startswith(("+++", "---")):
                continue
            resumed = RESUMED.match(text)
            if resumed:
                call, start = begun.pop(pid)
                ended = parse(start + resumed[2].lstrip(" ") if resumed[2].startswith(")") else start + resumed[2])
                call.arguments, call.result = ended.arguments, ended.result
                moments.append((call, True))
            elif text.endswith("<unfinished ...>"):
                start = text[: -len("<unfinished ...>")].rstrip()
                call = Call(start.split("(", 1)[0], split(start.split("(", 1)[1]))
                begun[pid] = (call, start)
                moments.append((call, False))
            else:
                call = parse(text)
                moments += [(call, False), (call, True)]
    return moments
