"""Kills a program in its sections, and then, at random moments, whoever completes them: the code, the process that runs
it, the service or the command. It is started again each time, and in the end all is there.

  completed-killed.py DURUMD DURUM PROGRAM ROUNDS [SEED]
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

durumd, durum, program, rounds, *seed = sys.argv[1:]
seed = int(seed[0]) if seed else random.randrange(1 << 32)
chance = random.Random(seed)
work = pathlib.Path(tempfile.mkdtemp(prefix="durum-completed.", dir="/dev/shm"))
heap, log = work / "heap", work / "log"
killed = {"code": 0, "runner": 0, "service": 0, "command": 0}


def start_service():
    served = subprocess.Popen(
        [durumd, "--store", work / "store", "--socket", work / "sock"],
        stderr=open(log, "ab"), env={**os.environ, "RUST_LOG": "info"})
    before = time.monotonic()
    while subprocess.run([durum, "ls", f"durum+unix:{work}/sock"], capture_output=True).returncode not in (0, 3):
        assert served.poll() is None and time.monotonic() < before + 60, log.read_text()
        time.sleep(0.01)
    return served


def children(pid):
    """Of all its threads: the one that runs code has it as a child of a child."""
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    except OSError:
        # It has ended meanwhile.
        pass
    return found


def code_below(pid, above=None):
    """The process of code that this one has run, if there is any, and the process that has started it."""
    for child in children(pid):
        try:
            if open(f"/proc/{child}/cmdline", "rb").read().startswith(b"durum-code"):
                return child, above
        except OSError:
            pass
        found = code_below(child, pid)
        if found:
            return found
    return None


def end(pid, whom):
    try:
        os.kill(pid, signal.SIGKILL)
        killed[whom] += 1
    except ProcessLookupError:
        pass


def interrupt(place):
    """The program is killed in the middle of its work."""
    running = subprocess.Popen([program, place])
    time.sleep(chance.uniform(0.1, 0.3))
    assert running.poll() is None, "the program has ended by itself"
    running.kill()
    running.wait()


def kill_soon(above, whom):
    """Kills whom of those that complete sections, if it gets hold of any in time. `above` is who has them run."""
    until = time.monotonic() + 0.3
    found = None
    while not found and time.monotonic() < until and above.poll() is None:
        found = code_below(above.pid)
    time.sleep(chance.uniform(0, 0.004))
    if whom in ("service", "command"):
        end(above.pid, whom)
        above.wait()
    elif found:
        code, runner = found
        end(code if whom == "code" else runner, whom)
    return found is not None


def completions():
    return len(re.findall("left in sections was completed", log.read_text()))


def is_completed():
    listed = subprocess.run([durum, "ls", "--json", f"durum+unix:{work}/sock"], capture_output=True, text=True)
    assert listed.returncode in (0, 3), listed
    return not any(pool["interrupted"] for pool in json.loads(listed.stdout)["pools"])


def examine(place):
    subprocess.run([program, place, "examine"], check=True)


def by_service():
    global service
    interrupt(f"durum+unix:{work}/sock:heap")
    starts = 0
    for _ in range(chance.randrange(4)):
        whom = chance.choice(["code", "code", "runner", "service"])
        starts += bool(kill_soon(service, whom))
        if service.poll() is not None:
            service, starts = start_service(), 0
    if starts >= 3:
        # It may have given up. The next one tries again.
        service.kill()
        service.wait()
        service = start_service()
    # The program would complete it itself.
    until = time.monotonic() + 60
    while not is_completed():
        assert time.monotonic() < until, "the service has it not completed"
        time.sleep(0.02)
    examine(f"durum+unix:{work}/sock:heap")


def by_command():
    interrupt(heap)
    complete = [durum, "recover", heap, "--complete-sections"]
    for _ in range(chance.randrange(4)):
        running = subprocess.Popen(complete, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        kill_soon(running, chance.choice(["code", "command"]))
        running.wait()
    ended = subprocess.run(complete, capture_output=True, text=True)
    assert ended.returncode == 0, ended
    assert subprocess.run([durum, "check", heap], capture_output=True).returncode == 0
    examine(heap)


service = start_service()
try:
    for number in range(int(rounds)):
        (by_command if number % 2 else by_service)()
    # The program may have been killed outside of its sections.
    for _ in range(10):
        if not completions():
            by_service()
    service.terminate()
    assert service.wait() == 0
    done = completions()
    print(f"seed {seed}: {killed}; the service had sections completed {done} times")
    assert "panicked" not in log.read_text()
    assert done >= 1
    assert int(rounds) < 20 or all(killed.values())
except BaseException:
    print(f"seed {seed}: {killed}", file=sys.stderr)
    print(log.read_text()[-4000:], file=sys.stderr)
    raise
finally:
    service.kill()
    shutil.rmtree(work)
