#!/usr/bin/env python3
"""Kills the durable cache while clients change it, and looks at what is there when it is started again:

    kill_cache.py CACHE KILLS [SEED]

Every change that a client was told of is there, and each other one as a whole or not at all. No connection, reference or
lock of the dead process remains. COME_BACK names a command that puts another heap in the place of this one: the same is
there, too.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cache"))
from test import Client, set_text  # noqa: E402

CLIENTS = 4
KEYS = 40
SIZES = [1, 10, 100, 2000, 20000, 150000]  # a line, several, and what `read` puts into the item itself


class Server:
    def __init__(self, heap):
        self.process = subprocess.Popen([sys.argv[1], "-p", "0", "-t", "3", "-m", "200", "-d", heap], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("port "):
            raise AssertionError(f"the server does not start: {self.process.communicate()[1]}")
        self.port = int(line.split()[1])

    def kill(self):
        self.process.kill()
        told = self.process.communicate()[1]
        assert self.process.returncode == -signal.SIGKILL, f"the server has ended with {self.process.returncode}: {told}"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        told = self.process.communicate(timeout=20)[1]
        assert self.process.returncode == 0, f"the server has ended with {self.process.returncode}: {told}"


class Keys:
    """What one client has been told of its keys, and what it was doing."""

    def __init__(self, number, seed):
        self.random = random.Random(seed)
        self.names = [b"%d:%d" % (number, i) + b"k" * self.random.choice([0, 0, 100]) for i in range(KEYS)]
        self.values = {}  # of which there was an answer
        self.doing = {}  # key: its value afterwards, or None
        self.changes = 0

    def change(self):
        """A command, the key that it changes, the value then, and the answer."""
        key = self.random.choice(self.names)
        old = self.values.get(key)
        value = self.random.randbytes(self.random.choice(SIZES))
        verb = self.random.choice([b"set", b"set", b"set", b"add", b"append", b"prepend", b"delete", b"incr", b"touch"])
        if verb == b"delete":
            return b"delete %s\r\n" % key, key, None, b"DELETED" if old is not None else b"NOT_FOUND"
        if verb == b"touch":
            return b"touch %s 1000\r\n" % key, key, old, b"TOUCHED" if old is not None else b"NOT_FOUND"
        if verb == b"incr":
            if old is None or not old.isdigit() or len(old) > 18:
                return set_text(key, b"%d" % self.random.getrandbits(30)), key, None, None
            after = b"%d" % (int(old) + 7)
            return b"incr %s 7\r\n" % key, key, after, after
        is_stored = verb == b"set" or (verb == b"add") == (old is None)
        if is_stored and verb in (b"append", b"prepend"):
            value = old + value[:2000] if verb == b"append" else value[:2000] + old
            added = value[len(old):] if verb == b"append" else value[:len(value) - len(old)]
            return set_text(key, added, verb=verb), key, value, b"STORED"
        return set_text(key, value, verb=verb), key, value if is_stored else old, b"STORED" if is_stored else b"NOT_STORED"

    def run(self, port):
        """Until the server is killed."""
        try:
            with Client(port) as client:
                while True:
                    self.do(client)
        except OSError:
            pass  # it was
        except EOFError:
            pass

    def do(self, client):
        changes = {}
        for _ in range(self.random.choice([1, 1, 4])):
            text, key, after, answer = self.change()
            if answer is None:  # a number first
                after, answer = text.split(b"\r\n")[1], b"STORED"
            changes.setdefault(key, (text, after, answer))
        self.doing = {key: after for key, (_, after, _) in changes.items()}
        client.send(b"".join(text for text, _, _ in changes.values()))
        for key, (text, after, answer) in changes.items():
            line = client.line()
            if not line.endswith(b"\r\n"):
                raise EOFError
            assert line == answer + b"\r\n", f"{text[:60]}: {line[:60]} instead of {answer[:60]}"
            del self.doing[key]
            self.changes += 1
            if after is None:
                self.values.pop(key, None)
            else:
                self.values[key] = after

    def examine(self, client):
        """Each key has its last value, or the one that it was being given. How many there are."""
        for key in self.names:
            client.send(b"get %s\r\n" % key)
            words = client.line().split()
            found = None
            if words != [b"END"]:
                found = client.file.read(int(words[3]) + 2)[:-2]
                assert client.line() == b"END\r\n"
            expected = self.values.get(key)
            if found != expected:
                assert key in self.doing and found == self.doing[key], \
                    f"{key[:20]}: {describe(found)} instead of {describe(expected)}, doing {describe(self.doing.get(key))}"
                self.values.pop(key, None)
                if found is not None:
                    self.values[key] = found
        self.doing = {}
        return len(self.values)


def describe(value):
    return "nothing" if value is None else f"{len(value)} bytes from {value[:10]} on"


def examine(server, all_keys):
    with Client(server.port) as client:
        items = sum(keys.examine(client) for keys in all_keys)
        stats, slabs = client.stats(), client.stats(b" slabs")
    used = sum(int(value) for name, value in slabs.items() if name.endswith(":used_chunks"))
    assert int(stats["curr_items"]) == items, f"{stats['curr_items']} items are counted, and {items} are there"
    assert used == items, f"{used} chunks are used for {items} items"
    assert stats["curr_connections"] == "1", f"{stats['curr_connections']} connections"


def main():
    kills = int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    all_keys = [Keys(number, seed + number) for number in range(CLIENTS)]
    directory = tempfile.mkdtemp(dir="/dev/shm", prefix="durum-cache-")
    heap = directory + "/heap"
    for _ in range(kills):
        server = Server(heap)
        examine(server, all_keys)
        failures = []

        def run(keys):
            try:
                keys.run(server.port)
            except Exception as failure:  # of any kind: it is told below
                failures.append(failure)

        threads = [threading.Thread(target=run, args=(keys,)) for keys in all_keys]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.002, 0.12))
        server.kill()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
    server = Server(heap)
    examine(server, all_keys)
    server.stop()
    if "COME_BACK" in os.environ:
        subprocess.run([*os.environ["COME_BACK"].split(), heap], check=True)
    server = Server(heap)
    examine(server, all_keys)
    server.kill()
    changes = sum(keys.changes for keys in all_keys)
    print(f"{kills} kills, {changes} changes")
    assert changes > 0
    shutil.rmtree(directory)


main()
