"""Compiles programs, runs them, kills them, and compares what they print."""

import os
import pathlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from .draw import Draw
from .variants import COMMON, Variant, engine

INPUTS = pathlib.Path(__file__).parents[1] / "inputs"
SECONDS_MAX = 60
SANITIZERS = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@dataclass(eq=False)
class Failure(Exception):
    """`kind` tells in a word what went wrong, for reduction to keep to it."""

    kind: str
    details: str
    variant: Variant = None


@dataclass
class Tools:
    durumcc: str
    clang: str
    # RANDOMC_DROP of hooks.c, or nothing.
    spoil: str
    scratch: pathlib.Path

    def __post_init__(self):
        self.hooks, self.counts = self.scratch / "hooks.so", self.scratch / "counts.o"
        prefix = pathlib.Path(self.durumcc).resolve().parents[1]
        self.include = prefix / "include"
        self.libraries = prefix / "lib"
        for options, name, to in ((["-shared", "-fPIC"], "hooks.c", self.hooks), (["-c"], "counts.c", self.counts)):
            subprocess.run([self.clang, "-O2", "-Wall", "-Wextra", "-Werror", *options, INPUTS / name, "-o", to], check=True)

    def directory(self):
        """One in memory, for a program and its heap."""
        return tempfile.TemporaryDirectory(dir=self.scratch)


def compile_program(compiler, options, source, to):
    command = [str(word) for word in [compiler, *COMMON, *options, f"-I{INPUTS}", source, "-o", to]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * SECONDS_MAX)
    if done.returncode:
        raise Failure("compiler", f"{' '.join(command)}\n{done.stderr[:4000]}")


def run(arguments, environment):
    """How a run ended, and what it said."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS_MAX, env=environment)
    except subprocess.TimeoutExpired:
        raise Failure("endless", f"it has not ended after {SECONDS_MAX} s") from None
    return done.returncode, done.stdout, done.stderr


def difference(expected, told):
    """The first line that differs."""
    lines = list(zip(expected.splitlines() + ["nothing"], told.splitlines() + ["nothing"]))
    return next((f"'{theirs}' instead of '{ours}'" for ours, theirs in lines if ours != theirs), "more or less lines")


def compare(expected, ended, kind):
    code, told, errors = ended
    if code != 0:
        raise Failure("ended", f"{kind}: ended with {code}\n{errors[-2000:]}")
    if told != expected:
        raise Failure(kind, f"{kind}: {difference(expected, told)}")


def expected_of(tools, source, directory, is_sanitized):
    """What the program prints with its data in ordinary memory."""
    outputs = []
    for options in [["-O0"], ["-O2"]] + ([SANITIZERS] if is_sanitized else []):
        program = directory / "plain"
        compile_program(tools.clang, ["-DPLAIN", *options], source, program)
        # Ordinary memory is not freed.
        code, told, errors = run([program], dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
        if code != 0 or outputs and told != outputs[0]:
            raise Failure("plain", f"plain with {' '.join(options)}: ended with {code}\n{errors[-4000:]}")
        outputs.append(told)
    return outputs[0]


class Trial:
    """A program in one variant, in a directory of its own."""

    def __init__(self, tools, seed, variant, source, directory, expected):
        self.tools, self.variant, self.expected = tools, variant, expected
        self.draw = Draw(f"kills of {seed} {variant.name}")
        self.program, self.heap, self.count = directory / "program", directory / "heap", directory / "count"
        self.environment = dict(os.environ, LD_LIBRARY_PATH=str(tools.libraries), LD_PRELOAD=str(tools.hooks),
                                DURUM_NVL_ENGINE=engine(seed))
        if tools.spoil:
            self.environment["RANDOMC_DROP"] = tools.spoil
        self.source = source

    def run(self, **environment):
        return run([self.program, self.heap], dict(self.environment, **environment))

    def forget(self):
        shutil.rmtree(self.heap, ignore_errors=True)
        self.heap.unlink(missing_ok=True)

    def all(self, kills):
        options = [*self.variant.options, f"-I{self.tools.include}", self.tools.counts]
        compile_program(self.tools.durumcc, options, self.source, self.program)
        calls = self.uninterrupted()
        self.killed_at_close()
        if self.variant.bears_kills:
            self.killed(kills, calls)

    def uninterrupted(self):
        """Runs it to its end, and what it left once more. How often it called which functions of the runtime."""
        compare(self.expected, self.run(RANDOMC_COUNT=str(self.count)), "uninterrupted")
        if self.variant.is_durable:
            compare(self.expected, self.run(), "opened again")
        self.forget()
        return {name: int(count) for name, count in (line.split() for line in self.count.read_text().splitlines())}

    def killed_at_close(self):
        """What has not become durable by then never does."""
        if not self.variant.is_durable:
            return
        code, _, errors = self.run(RANDOMC_KILL="close")
        if code != -9:
            raise Failure("ended", f"to be killed when it closes its heap: ended with {code}\n{errors[-2000:]}")
        compare(self.expected, self.run(), "killed at its end")
        self.forget()

    def killed(self, kills, calls):
        """Killed at calls of the runtime or a moment later, it goes on until it is done."""
        moments = []
        for _ in range(kills):
            # At its end a transaction has the most to take back.
            name = self.draw.choice(["all", "tx_end"])
            moments.append(f"{name}:{1 + self.draw.randrange(max(1, 2 * calls[name] // (kills + 1)))}:"
                           f"{self.draw.choice([0, 0, self.draw.randrange(1, 400)])}")
            ended = self.run(RANDOMC_KILL=moments[-1])
            if ended[0] != -9:
                break
        else:
            ended = self.run()
        compare(self.expected, ended, f"killed at {' '.join(moments)}")
        self.forget()


def check(tools, program, variants, kills, is_sanitized, without=frozenset()):
    """Compares all variants of a program. Raises a Failure."""
    with tools.directory() as name:
        directory = pathlib.Path(name)
        source = directory / "program.c"
        source.write_text(program.text(without))
        expected = expected_of(tools, source, directory, is_sanitized)
        for variant in variants:
            try:
                Trial(tools, program.seed, variant, source, directory, expected).all(kills)
            except Failure as failure:
                failure.variant = variant
                raise
