#!/usr/bin/env python3
"""An independent judge of power cuts: it watches a program from outside and rebuilds what a cut could leave.

    judge.py [OPTIONS] --then "durum recover {store}" --then "workload {store} check" -- workload {store} run 40

It uses nothing of the project but the programs that it is given. {store} is a place below --work. The program
runs under strace; it says on its standard output

    begun KEY N     before its N-th transaction on KEY can have an effect
    done KEY N      when all up to the N-th are durable

The judge cuts the power at moments of that run, in each of the ways that media.py tells of, and runs the commands of
--then on each image. All have to succeed, and what the last one prints, lines of `holds KEY N`, must be as
many as done, or more, up to those begun. That N transactions are there as a whole is for that command to check.
Before anything is done there may be no store yet, and only the last command runs.

--nested N: N of the images are recovered under strace, too, and the power is cut again while that goes on.
--canaries N: a sync is taken for one that was never made, and this has to be noticed. N transactions are drawn, and the
last syncs before the word that they are durable are left out in turn.
"""

import argparse
import collections
import concurrent.futures
import copy
import itertools
import os
import random
import shlex
import shutil
import subprocess
import sys
import threading

import calls
import media

SECONDS_MAX = 60  # of a command on an image
SHOWN_MAX = 3  # images that failed
IMAGES_AT_A_POINT = 8
IMAGES_OF_A_CANARY = 60
PASSES_MAX = 4
RECOVERY = "/recovery"
SYNCS = ("fsync", "fdatasync")
NAMING = ("write", "rename", "unlink", "openat", "mkdir")


class Run:
    """A recorded run: what was on the media before, and what was done. `speaks`: its output tells of transactions."""

    def __init__(self, top, moments, start, speaks):
        self.top, self.moments, self.start, self.speaks = top, moments, start, speaks

    def replay(self, left_out=frozenset()):
        """The state behind each moment that made a difference: (moment, media, said). `left_out`: ends of syncs."""
        at = media.Media(self.top, copy.deepcopy(self.start))
        said = Said()
        for moment, (call, ends) in enumerate(self.moments):
            said_more = self.speaks and not ends and said.take(call)
            if moment in left_out:
                at.forget(call)
            elif at.take(moment, call, ends) or said_more:
                yield moment, at, said


class Said:
    """What the program has said of its transactions."""

    def __init__(self):
        self.begun, self.done = {}, {}

    def take(self, call):
        if call.name != "write" or not call.arguments[0].startswith("1<"):
            return False
        for line in call.bytes(1).decode().splitlines():
            word, _, told = line.partition(" ")
            if word in ("begun", "done"):
                key, number = told.split()
                (self.begun if word == "begun" else self.done)[key] = int(number)
        return True

    def copy(self):
        other = Said()
        other.begun, other.done = dict(self.begun), dict(self.done)
        return other

    def objection(self, output):
        """What is wrong with what the last command has found; None if nothing is."""
        held = dict.fromkeys(self.done, -1)
        for line in output.splitlines():
            word, _, told = line.partition(" ")
            if word == "holds":
                key, number = told.split()
                held[key] = int(number)
        for key, number in held.items():
            done = self.done.get(key, -1)
            if number < done:
                return f"{done} transactions of {key} were acknowledged, and {number} are there"
            if number > max(done, self.begun.get(key, 0)):
                return f"{number} transactions of {key} are there, and {self.begun.get(key, 0)} were begun"
        return None


def choices(units, chance):
    """Ways to lose power, without end: each a name and the version of each unit that is not the durable one."""
    newest = {key: count for key, _, count in units}
    yield "none", {}
    if not units:
        return
    yield "all", newest
    keys = list(newest)
    paths = sorted({path for _, path, _ in units})
    drawn = 0
    while True:
        kind = chance.choice(["one", "but-one", "file", "but-file", "mix", "mix", "mix"])
        if kind == "one":
            key = chance.choice(keys)
            choice = {key: newest[key]}
        elif kind == "but-one":
            key = chance.choice(keys)
            choice = {other: count for other, count in newest.items() if other != key}
        elif kind in ("file", "but-file"):
            chosen = chance.choice(paths)
            choice = {key: count for key, path, count in units if (path == chosen) == (kind == "file")}
        else:
            share = chance.choice([0.1, 0.5, 0.9])
            choice = {key: chance.randint(1, newest[key]) for key in keys if chance.random() < share}
        yield f"{kind}-{drawn}", choice
        drawn += 1


class Judge:
    def __init__(self, options):
        self.options = options
        self.work = os.path.abspath(options.work)
        self.trace = options.replay or os.path.join(self.work, "run.strace")
        self.images_in = os.path.abspath(options.images_in or options.work)
        self.serial = 0
        self.images = 0
        self.nested = 0
        self.failures = []
        self.pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
        # No more images wait than are looked at.
        self.room = threading.Semaphore(options.jobs + 1)

    def place(self, what):
        self.serial += 1
        path = os.path.join(self.images_in, f"{what}-{self.serial}")
        shutil.rmtree(path, ignore_errors=True)
        return path

    def command(self, words, place):
        return [word.replace("{store}", os.path.join(place, "store")) for word in words]

    # ---- one image

    def look(self, place, said):
        """Runs the commands on an image; what is wrong with it, or None."""
        commands = self.options.then if said.done else self.options.then[-1:]
        output = ""
        for words in commands:
            command = self.command(words, place)
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
            except subprocess.TimeoutExpired:
                return f"{shlex.join(command)} takes more than {SECONDS_MAX} s"
            if ran.returncode != 0:
                return f"{shlex.join(command)} exits {ran.returncode}: {(ran.stdout + ran.stderr).strip()[-1000:]}"
            output = ran.stdout
        return said.objection(output)

    def judge_image(self, at, choice, said, name):
        """Writes an image and looks at it on another thread. The future's result is what is wrong with it, or None."""
        place = self.place("image")
        self.room.acquire()
        at.write_image(place, choice)
        self.images += 1
        said = said.copy()
        self.keep_first(place, name)

        def look():
            try:
                return self.look(place, said)
            finally:
                shutil.rmtree(place, ignore_errors=True)
                self.room.release()

        return self.pool.submit(look)

    def keep_first(self, place, name):
        """With --only the image stays, as it was before anything ran on it."""
        if self.options.only == name:
            kept = os.path.join(self.work, "kept")
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(place, kept)
            print(f"judge: the image of {name} is {kept}")

    # ---- a run

    def record(self, command, place, speaks, trace=None):
        """Runs a command under strace, on what is below `place`: how it ended, and the run. `trace` keeps its calls."""
        start = media.load(place)
        kept = trace or os.path.join(self.work, "recovery.strace")
        ran = calls.record(self.command(command, place), kept)
        moments = calls.read(kept)
        if not trace:
            os.remove(kept)
        return ran, Run(place, moments, start, speaks)

    def points(self, run, moments, count, chance):
        """Moments to cut at: half of them where names change, something is said, or a sync is about to end."""
        telling, others = [], []
        for moment in moments:
            call, _ = run.moments[moment]
            after, ends = run.moments[min(moment + 1, len(run.moments) - 1)]
            is_telling = call.name in NAMING or (ends and after.name in SYNCS)
            (telling if is_telling else others).append(moment)
        drawn = chance.sample(telling, min(len(telling), -(-count // 2)))
        return set(drawn + chance.sample(others, min(len(others), count - len(drawn))))

    def judge_run(self, run, name, images, nested, said=None):
        """Cuts the power at moments of a run. `said`: by the run before, of which this one is the recovery."""
        chance = random.Random(f"{self.options.seed} {name}")
        moments = [moment for moment, _, _ in run.replay()]
        results, seen = [], set()
        # Moments at which little is not durable give few images: others follow.
        for _ in range(PASSES_MAX):
            missing = images - len(seen)
            points = self.points(run, moments, -(-missing // IMAGES_AT_A_POINT), chance) if missing > 0 else ()
            for moment, at, now in run.replay() if points else ():
                if moment in points:
                    self.judge_point(at, said or now, f"{name}:{moment}", nested / images, seen, results)
        for image, result in results:
            self.note(image, result.result())

    def judge_point(self, at, said, name, nested_share, seen, results):
        """Cuts the power at one moment, in ways that gave no image before."""
        ways = choices(at.units(), random.Random(f"{self.options.seed} {name}"))
        made, only = 0, self.options.only
        for kind, choice in itertools.islice(ways, 4 * IMAGES_AT_A_POINT):
            chosen = frozenset((key, at.version(key, number)) for key, number in choice.items())
            mark = (at.syncs, chosen, str(said.done))
            if mark in seen:
                continue
            if made == IMAGES_AT_A_POINT:
                return
            seen.add(mark)
            made += 1
            image = f"{name}:{kind}"
            if only and only != image and not only.startswith(image + RECOVERY):
                continue
            results.append((image, self.judge_image(at, choice, said, image)))
            if said.done and random.Random(f"{self.options.seed} {image}").random() < nested_share:
                self.judge_recovery(at, choice, said.copy(), image)

    def judge_recovery(self, at, choice, said, name):
        """Cuts the power while the first command works on an image."""
        place = self.place("nested")
        at.write_image(place, choice)
        ran, run = self.record(self.options.then[0], place, speaks=False)
        self.nested += 1
        if ran.returncode != 0:
            self.note(name, f"under strace the first command exits {ran.returncode}: {ran.stderr}")
        else:
            self.judge_run(run, name + RECOVERY, 4 * IMAGES_AT_A_POINT, 0, said)
        shutil.rmtree(place, ignore_errors=True)

    def note(self, image, objection):
        if objection is None:
            return
        self.failures.append(image)
        if len(self.failures) <= SHOWN_MAX:
            print(f"judge: {image}: {objection}")
            print(f"    again with --replay {self.trace} --seed {self.options.seed} --only {image}")

    # ---- canaries

    def canaries(self, run, chance):
        """Leaves syncs out. How many, and how many of them were noticed."""
        syncs = collections.defaultdict(list)  # by the word that followed them
        since = []
        said = Said()
        for moment, (call, ends) in enumerate(run.moments):
            if ends and call.name in SYNCS and call.descriptor(0)[1].startswith(run.top + "/"):
                since.append(moment)
            if not ends and said.take(call) and b"done" in call.bytes(1):
                syncs[moment], since = since, []
        acknowledged = [moment for moment, made in syncs.items() if made]
        left_out = noticed = 0
        for moment in chance.sample(acknowledged[1:], min(len(acknowledged) - 1, self.options.canaries)):
            for sync in syncs[moment][-3:]:
                left_out += 1
                noticed += self.is_noticed(run, sync, moment, chance)
        return left_out, noticed

    def is_noticed(self, run, sync, acknowledged, chance):
        tried = 0
        for moment, at, said in run.replay({sync}):
            if moment < sync:
                continue
            if tried >= IMAGES_OF_A_CANARY or moment > acknowledged + 20:
                return False
            results = []
            for _, (kind, choice) in zip(range(4), choices(at.units(), chance)):
                results.append(self.judge_image(at, choice, said, f"canary:{sync}:{moment}:{kind}"))
                tried += 1
            if any(result.result() is not None for result in results):
                return True
        return False

    # ---- everything

    def judge(self):
        place = os.path.join(self.work, "run")
        if self.options.replay:
            run = Run(place, calls.read(self.options.replay), media.Directory(), speaks=True)
        else:
            os.makedirs(place)
            ran, run = self.record(self.options.program, place, speaks=True, trace=self.trace)
            if ran.returncode != 0:
                sys.exit(f"judge: the program exits {ran.returncode}: {ran.stderr}")
        self.judge_run(run, "run", self.options.images, self.options.nested)
        images = self.images
        print(
            f"judge: {len(run.moments) // 2} calls, {images} images, {self.nested} of them with cuts in their "
            f"recovery: {len(self.failures)} wrong (seed {self.options.seed})"
        )
        is_right = images > 0 and not self.failures
        if is_right and self.options.canaries and not self.options.only:
            left_out, noticed = self.canaries(run, random.Random(self.options.seed))
            print(f"judge: {left_out} syncs left out in turn, {noticed} noticed")
            is_right = noticed > 0
        if not is_right:
            sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help="a directory of its own, on a file system of domain `file`")
    parser.add_argument("--images-in", help="where images are made (--work)")
    parser.add_argument("--then", action="append", required=True, help="a command that an image has to bear")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--nested", type=int, default=0)
    parser.add_argument("--canaries", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--replay", help="the calls of an earlier run with the same --work; the program does not run")
    parser.add_argument("--only", help="the one image of this name; it is kept")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    options.then = [shlex.split(command) for command in options.then]
    try:
        Judge(options).judge()
    except calls.Surprise as surprise:
        sys.exit(f"judge: {surprise}")


if __name__ == "__main__":
    main()
