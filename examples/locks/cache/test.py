#!/usr/bin/env python3
"""Talks to a cache over the loopback interface: `test.py CACHE [SEED [DIR]]`. Prints what passed; a failure ends it.

A cache that is durable makes its heaps in DIR.
"""
import itertools
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

KEY_SIZE_MAX = 250
ITEM_SIZE_MAX = 1 << 20
LINE_SIZE_MAX = 8192
SECONDS_MAX = 10  # for an answer, under a sanitizer and with other work on the machine


class Server:
    heaps = itertools.count(1)

    def __init__(self, *options):
        if len(sys.argv) > 3:
            options += "-d", f"{sys.argv[3]}/{next(self.heaps)}"
        self.process = subprocess.Popen(
            [sys.argv[1], "-p", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = int(re.fullmatch(r"port (\d+)\n", self.process.stdout.readline())[1])
        # Else a server that tells much would wait for its reader.
        self.told = []
        self.reader = threading.Thread(target=lambda: self.told.extend(self.process.stderr))
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure:
            self.process.kill()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=SECONDS_MAX)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        if failure and code == -signal.SIGKILL:
            return
        if code != 0 or any("Sanitizer" in line for line in self.told):
            sys.exit(f"the server has ended with {code}:\n{''.join(self.told)}")

    def client(self):
        return Client(self.port)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text)

    def line(self):
        return self.file.readline()

    def expect(self, text, *lines):
        """Sends the text, and compares what comes back: bytes, or patterns (str)."""
        if text:
            self.send(text)
        for wanted in lines:
            line = self.line()
            if isinstance(wanted, str):
                same = re.fullmatch(b"(?:%s)\r\n" % wanted.encode(), line)
            else:
                same = line == wanted + b"\r\n"
            if not same:
                raise AssertionError(f"{text[:100]}: {line[:100]} instead of {wanted[:100]}")

    def at_end(self):
        """The server has closed the connection."""
        try:
            return self.file.read(1) == b""
        except ConnectionError:
            return True

    def stats(self, of=b""):
        self.send(b"stats" + of + b"\r\n")
        found = {}
        while (line := self.line()) != b"END\r\n":
            _, name, value = line.decode().split()
            found[name] = value
        return found


def set_text(key, value, flags=0, seconds=0, verb=b"set", more=b""):
    return b"%s %s %d %d %d%s\r\n%s\r\n" % (verb, key, flags, seconds, len(value), more, value)


def check_commands(client):
    """each command does what it should"""
    e = client.expect
    e(b"get a\r\n", b"END")
    e(set_text(b"a", b"one", 7), b"STORED")
    e(b"get a\r\n", b"VALUE a 7 3", b"one", b"END")
    e(b"get b a a\r\n", b"VALUE a 7 3", b"one", b"VALUE a 7 3", b"one", b"END")
    e(set_text(b"a", b"two", verb=b"add"), b"NOT_STORED")
    e(set_text(b"b", b"two", verb=b"replace"), b"NOT_STORED")
    e(set_text(b"b", b"two", verb=b"append"), b"NOT_STORED")
    e(set_text(b"b", b"two", verb=b"prepend"), b"NOT_STORED")
    e(set_text(b"b", b"\r\n\0x", 4294967295, verb=b"add"), b"STORED")
    e(b"get b\r\n", b"VALUE b 4294967295 4", b"", b"\0x", b"END")
    e(set_text(b"a", b"2", verb=b"replace"), b"STORED")
    e(set_text(b"a", b"34", 9, verb=b"append"), b"STORED")
    e(set_text(b"a", b"01", 9, verb=b"prepend"), b"STORED")
    e(b"get a\r\n", b"VALUE a 0 5", b"01234", b"END")
    e(b"delete a\r\n", b"DELETED")
    e(b"delete a\r\n", b"NOT_FOUND")
    e(b"delete b 0\r\n", b"DELETED")
    e(set_text(b"empty", b""), b"STORED")
    e(b"get empty\r\n", b"VALUE empty 0 0", b"", b"END")
    e(b"version\r\n", r"VERSION [\d.]+")
    e(b"verbosity 0\r\n", b"OK")
    e(b"   get    empty   \n", b"VALUE empty 0 0", b"", b"END")


def check_unique(client):
    """cas stores only what nobody has changed"""
    e = client.expect
    e(set_text(b"c", b"1", verb=b"cas", more=b" 1"), b"NOT_FOUND")
    e(set_text(b"c", b"1"), b"STORED")
    client.send(b"gets c\r\n")
    unique = client.line().split()[4]
    e(b"", b"1", b"END")
    e(b"gets c\r\n", b"VALUE c 0 1 " + unique, b"1", b"END")
    e(set_text(b"c", b"2", verb=b"cas", more=b" " + unique), b"STORED")
    e(set_text(b"c", b"3", verb=b"cas", more=b" " + unique), b"EXISTS")
    client.send(b"gets c\r\n")
    assert client.line().split()[4] != unique
    e(b"", b"2", b"END")
    e(set_text(b"c", b"4", verb=b"cas", more=b" 0 noreply") + b"get c\r\n", b"VALUE c 0 1", b"2", b"END")


def check_numbers(client):
    """numbers wrap around, and stop at 0"""
    e = client.expect
    e(b"incr n 1\r\n", b"NOT_FOUND")
    e(b"decr n 1\r\n", b"NOT_FOUND")
    e(set_text(b"n", b"9", 5), b"STORED")
    e(b"incr n 1\r\n", b"10")
    e(b"get n\r\n", b"VALUE n 5 2", b"10", b"END")
    e(b"decr n 3\r\n", b"7")
    e(b"decr n 8\r\n", b"0")
    e(b"incr n 18446744073709551615\r\n", b"18446744073709551615")
    e(b"incr n 2\r\n", b"1")
    e(set_text(b"n", b"00018446744073709551614"), b"STORED")
    e(b"incr n 1\r\n", b"18446744073709551615")
    for wrong in [b"18446744073709551616", b"-1", b"x", b"1x", b"0x10"]:
        e(b"incr n " + wrong + b"\r\n", b"CLIENT_ERROR invalid numeric delta argument")
    for wrong in [b"", b"1 ", b"-1", b"18446744073709551616", b"1" * 21, b"abc"]:
        e(set_text(b"n", wrong), b"STORED")
        e(b"decr n 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value")


def check_times(client):
    """items expire, are touched, and are flushed"""
    e = client.expect
    now = int(time.time())
    e(set_text(b"past", b"x", seconds=-1), b"STORED")
    e(b"get past\r\n", b"END")
    e(set_text(b"past", b"x", seconds=now - 5), b"STORED")
    e(set_text(b"past", b"y", verb=b"replace"), b"NOT_STORED")
    e(set_text(b"soon", b"x", seconds=1), b"STORED")
    e(set_text(b"later", b"x", seconds=1000), b"STORED")
    e(set_text(b"date", b"x", seconds=now + 1000), b"STORED")
    e(set_text(b"kept", b"x", seconds=1), b"STORED")
    e(b"touch kept 1000\r\n", b"TOUCHED")
    e(b"touch nothing 1000\r\n", b"NOT_FOUND")
    e(b"touch date -1\r\n", b"TOUCHED")
    e(b"get soon later date\r\n", b"VALUE soon 0 1", b"x", b"VALUE later 0 1", b"x", b"END")
    time.sleep(2.1)
    e(b"get soon later kept\r\n", b"VALUE later 0 1", b"x", b"VALUE kept 0 1", b"x", b"END")
    e(b"flush_all 1\r\n", b"OK")
    e(b"get later\r\n", b"VALUE later 0 1", b"x", b"END")
    time.sleep(1.1)
    e(set_text(b"new", b"x"), b"STORED")
    e(b"get later kept new\r\n", b"VALUE new 0 1", b"x", b"END")
    e(b"flush_all\r\n" + set_text(b"after", b"x"), b"OK", b"STORED")
    e(b"get new after\r\n", b"VALUE after 0 1", b"x", b"END")
    e(b"flush_all noreply\r\nget after\r\n", b"END")


def check_errors(client):
    """each mistake has one answer, and the next command is understood"""
    e = client.expect
    usage = "CLIENT_ERROR usage: .*"
    for wrong in [b"nonsense", b"", b" ", b"GET a", b"se", b"\0", b"\xff\xfe 1", b"set\0 a 0 0 1"]:
        e(wrong + b"\r\n", b"ERROR")
    for wrong in [b"get", b"gets ", b"set", b"set a 0 0", b"set a 0 0 1 2 3", b"set a b c d e f g h i j",
                  b"cas a 0 0 1", b"delete", b"delete a 1", b"incr a", b"touch a", b"flush_all 1 2", b"flush_all -1",
                  b"stats nothing", b"stats a b", b"version 1", b"verbosity", b"verbosity x"]:
        e(wrong + b"\r\n", usage)
    for wrong in [b"-1", b"x", b"2147483648", b"99999999999999999999", b"1e3"]:
        e(b"set a 0 0 " + wrong + b"\r\n", "CLIENT_ERROR the size .*")
    e(b"set a -1 0 3\r\nabc\r\n", "CLIENT_ERROR the flags .*")
    e(b"set a 4294967296 0 3\r\nabc\r\n", "CLIENT_ERROR the flags .*")
    e(b"set a 0 x 3\r\nabc\r\n", "CLIENT_ERROR the time .*")
    e(b"cas a 0 0 3 x\r\nabc\r\n", "CLIENT_ERROR the last number .*")
    e(b"touch a x\r\n", "CLIENT_ERROR the time .*")
    e(b"set a 0 0 3\r\nabcde\r\n", "CLIENT_ERROR bad data chunk.*", b"ERROR")
    long_key = b"k" * (KEY_SIZE_MAX + 1)
    for verb in [b"get", b"gets", b"delete"]:
        e(verb + b" " + long_key + b"\r\n", "CLIENT_ERROR the key is too long.*")
    e(set_text(long_key, b"get a\r\nget b"), "CLIENT_ERROR the key is too long.*")
    e(set_text(long_key[1:], b"x"), b"STORED")
    e(b"get " + long_key[1:] + b"\r\n", b"VALUE " + long_key[1:] + b" 0 1", b"x", b"END")
    e(b"get a\tb\r\n", "CLIENT_ERROR the key has a control character.*")
    e(b"get " + b"x " * LINE_SIZE_MAX + b"\r\n", "CLIENT_ERROR the line is too long.*")
    e(b"x" * 1000000 + b"\r\n", "CLIENT_ERROR the line is too long.*")
    e(b"get " + b"x " * ((LINE_SIZE_MAX - 6) // 2) + b"\r\n", b"END")
    e(b"get a\r\n", b"END")


def check_quiet(client):
    """noreply is quiet about all that a command has to say"""
    quiet = [set_text(b"q", b"1", more=b" noreply"), set_text(b"q", b"1", verb=b"add", more=b" noreply"),
             set_text(b"q", b"1", verb=b"append", more=b" noreply"), b"incr q 5 noreply\r\n", b"decr q 1 noreply\r\n",
             b"incr q x noreply\r\n", b"touch q 0 noreply\r\n", b"delete nothing noreply\r\n",
             b"verbosity 0 noreply\r\n", b"set q x 0 1 noreply\r\n1\r\n",
             b"set " + b"k" * 300 + b" 0 0 2 noreply\r\nxx\r\n"]
    client.expect(b"".join(quiet) + b"get q\r\n", b"VALUE q 0 2", b"15", b"END")


def check_sizes(client):
    """values of all sizes come back, and those that are too large are refused"""
    random_bytes = random.Random(1).randbytes(ITEM_SIZE_MAX)
    sizes = [size + by for size in [2, 64, 1024, 8192, 65536, 524288] for by in [-2, -1, 0, 1, 2]]
    for size in sizes:
        client.expect(set_text(b"s%d" % size, random_bytes[:size]), b"STORED")
    for size in sizes:
        client.send(b"get s%d\r\n" % size)
        assert client.line() == b"VALUE s%d 0 %d\r\n" % (size, size)
        assert client.file.read(size + 2) == random_bytes[:size] + b"\r\n", f"a value of {size} bytes is damaged"
        assert client.line() == b"END\r\n"
    fits = size = 0
    for size in range(ITEM_SIZE_MAX - 128, ITEM_SIZE_MAX, 8):
        client.send(set_text(b"large", random_bytes[:size]))
        line = client.line()
        if line != b"STORED\r\n":
            break
        fits = size
    assert fits > ITEM_SIZE_MAX - 128 and line.startswith(b"SERVER_ERROR object too large for cache"), line
    client.expect(b"get large\r\n", b"END")
    client.expect(set_text(b"large", b"x" * (3 * ITEM_SIZE_MAX)), "SERVER_ERROR object too large for cache.*")
    half = b"x" * (fits // 2 + 64)
    client.expect(set_text(b"large", half), b"STORED")
    client.expect(set_text(b"large", half, verb=b"append"), "SERVER_ERROR out of memory storing object.*")
    client.expect(b"get large\r\n", b"VALUE large 0 %d" % len(half), half, b"END")


def check_pieces(server):
    """commands may come in any pieces, and clients may go at any time"""
    text = (set_text(b"piece", b"p" * 20) + b"get piece\r\nincr piece 1\r\n"
            + set_text(b"piece", b"5") + b"incr piece 1\r\n")
    with server.client() as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(text)):
            client.send(text[i:i + 1])
            time.sleep(0.001)
        client.expect(b"", b"STORED", b"VALUE piece 0 20", b"p" * 20, b"END", "CLIENT_ERROR .*", b"STORED", b"6")
    for i in range(0, len(text), 3):
        with server.client() as client:
            client.send(text[:i])
    with server.client() as client:
        client.send(text)
        client.socket.shutdown(socket.SHUT_WR)
        client.expect(b"", b"STORED", b"VALUE piece 0 20", b"p" * 20, b"END", "CLIENT_ERROR .*", b"STORED", b"6")
        assert client.at_end()
    with server.client() as client:
        client.send(b"quit\r\nget piece\r\n")
        assert client.at_end()


def check_noise(server, seed):
    """whatever clients send, the server goes on"""
    chance = random.Random(seed)
    parts = [b"get", b"set", b"cas", b"append", b"incr", b"touch", b"stats", b"flush_all", b"noreply", b"a", b"0", b"1",
             b"-1", b"99999999999999999999", b" ", b" ", b" ", b"\r\n", b"\n", b"\r", b"\0", b"k" * 251, b"x" * 9000]
    for _ in range(150):
        with server.client() as client:
            noise = b"".join(chance.choices(parts, k=chance.randrange(200)) + [chance.randbytes(chance.randrange(99))])
            try:
                client.send(noise)
                client.socket.settimeout(0.01)
                client.file.read(chance.randrange(1, 100))
            except OSError:
                pass  # the answer is shorter, or the server has closed the connection
    with server.client() as client:
        client.expect(set_text(b"noise", b"heard"), b"STORED")


def check_slow_reader(server):
    """a client that does not read keeps nobody else waiting, and finds what it asked for"""
    value = bytes(range(256)) * 2000
    with server.client() as slow, server.client() as other:
        other.expect(set_text(b"slow", value), b"STORED")
        asked = 40
        slow.send(b"get slow slow\r\n" * asked)
        other.expect(set_text(b"slow", b"other"), b"STORED")
        for i in range(200):
            other.expect(b"set fill%d 0 0 500000\r\n%s\r\n" % (i, b"f" * 500000), "STORED|SERVER_ERROR out of memory.*")
        for _ in range(asked):
            for _ in range(2):
                size = int(slow.line().split()[3])
                assert slow.file.read(size + 2) in (value + b"\r\n", b"other\r\n"), "a value changed while it was sent"
            assert slow.line() == b"END\r\n"
    with server.client() as client:
        client.send(b"get fill199 fill198\r\n" * 100)
        time.sleep(0.1)  # the answer waits for a reader that never comes


def check_eviction(server):
    """what is old makes room for what is new"""
    with server.client() as client:
        client.send(b"".join(set_text(b"e%d" % i, b"%d" % i * 400, more=b" noreply") for i in range(8000)))
        found = 0
        for i in range(8000):
            client.send(b"get e%d\r\n" % i)
            if client.line() != b"END\r\n":
                found += 1
                client.expect(b"", b"%d" % i * 400, b"END")
                last = i
        assert 0 < found < 8000 and last == 7999, found
        stats = client.stats()
        assert int(stats["evictions"]) >= 8000 - found and int(stats["bytes"]) < 64 << 20
        assert int(client.stats(b" slabs")["active_slabs"]) > 0
        assert any(name.endswith(":number") for name in client.stats(b" items"))
        client.expect(b"stats reset\r\n", b"RESET")
        stats = client.stats()
        assert stats["evictions"] == "0" and int(stats["curr_items"]) >= found


class Model:
    """What one client's keys must be."""

    def __init__(self, name, seed, flushes):
        self.random = random.Random(seed)
        self.keys = [b"%s:%d" % (name, i) + b"k" * self.random.choice([0, 0, 0, 40, 230]) for i in range(60)]
        self.items = {}  # key: [flags, value, what gets has said or None]
        self.flushes = flushes

    def store(self, key, flags, value):
        self.items[key] = [flags, value, None]
        return b"STORED\r\n"

    def value(self):
        if self.random.random() < 0.4:
            return b"%d" % self.random.choice([0, 9, 99, 2**64 - 1, self.random.getrandbits(63)])
        return self.random.randbytes(self.random.choice([0, 1, 10, 100, 1000, 9000]))

    def command(self):
        """A command's text, and what must be answered (bytes, or a function that reads it from a client)."""
        key, value, flags = self.random.choice(self.keys), self.value(), self.random.getrandbits(32)
        item = self.items.get(key)
        verb = self.random.choice([b"set", b"add", b"replace", b"append", b"prepend", b"cas", b"delete", b"incr",
                                   b"decr", b"touch", b"get", b"get", b"gets", b"flush_all"])
        more, quiet = b"", self.random.random() < 0.2
        if verb == b"flush_all" and (not self.flushes or self.random.random() < 0.9):
            verb = b"get"
        if verb in (b"get", b"gets"):
            keys = [key] + self.random.choices(self.keys, k=self.random.choice([0, 0, 5]))
            # Later commands of the same batch make other lists for these keys.
            asked = [(key, self.items[key]) for key in keys if key in self.items]
            return verb + b" " + b" ".join(keys) + b"\r\n", lambda client: self.read(client, asked, verb == b"gets")
        if verb == b"flush_all":
            self.items.clear()
            text, answer = b"flush_all", b"OK\r\n"
        elif verb == b"delete":
            text, answer = b"delete " + key, b"DELETED\r\n" if self.items.pop(key, None) else b"NOT_FOUND\r\n"
        elif verb == b"touch":
            text, answer = b"touch " + key + b" 500", b"TOUCHED\r\n" if item else b"NOT_FOUND\r\n"
        elif verb in (b"incr", b"decr"):
            by = self.random.choice([0, 1, 10, 2**64 - 1])
            text, answer = b"%s %s %d" % (verb, key, by), self.count(key, by if verb == b"incr" else -by)
        else:
            if verb == b"cas":
                told = item[2] if item and item[2] and self.random.random() < 0.8 else 2**63
                more = b" %d" % told
                if item and told != 2**63:
                    answer = self.store(key, flags, value)
                else:
                    answer = b"EXISTS\r\n" if item else b"NOT_FOUND\r\n"
            elif verb == b"set" or (verb == b"add") == (item is None) and verb in (b"add", b"replace"):
                answer = self.store(key, flags, value)
            elif item and verb in (b"append", b"prepend"):
                answer = self.store(key, item[0], item[1] + value if verb == b"append" else value + item[1])
            else:
                answer = b"NOT_STORED\r\n"
            more += b" noreply" if quiet else b""
            return set_text(key, value, flags, self.random.choice([0, 1000]), verb, more), b"" if quiet else answer
        return text + (b" noreply\r\n" if quiet else b"\r\n"), b"" if quiet else answer

    def count(self, key, by):
        item = self.items.get(key)
        if not item:
            return b"NOT_FOUND\r\n"
        if not re.fullmatch(rb"0*[0-9]{1,20}", item[1]) or int(item[1]) >= 2**64:
            return b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
        value = b"%d" % (max(0, int(item[1]) + by) % 2**64)
        self.store(key, item[0], value)
        return value + b"\r\n"

    @staticmethod
    def read(client, asked, with_cas):
        for key, item in asked:
            value, words = item[1], client.line().split()
            assert words[:4] == [b"VALUE", key, b"%d" % item[0], b"%d" % len(value)], (words, item[0], len(value))
            assert client.file.read(len(value) + 2) == value + b"\r\n", f"the value of {key} is wrong"
            if with_cas:
                assert item[2] in (None, int(words[4])), f"the number of {key} has changed"
                item[2] = int(words[4])
        assert client.line() == b"END\r\n"

    def run(self, client, batches):
        for _ in range(batches):
            pairs = [self.command() for _ in range(self.random.choice([1, 3, 30]))]
            text = b"".join(text for text, _ in pairs)
            while text:
                size = self.random.choice([len(text), 5000, 100])
                client.send(text[:size])
                text = text[size:]
            for text, answer in pairs:
                if callable(answer):
                    answer(client)
                elif answer:
                    line = client.line()
                    assert line == answer, f"{text[:100]}: {line[:100]} instead of {answer[:100]}"


def in_threads(*works):
    failures = []

    def run(work):
        try:
            work()
        except Exception as failure:  # of any kind: it is told below
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def check_soak(server, seed):
    """random commands do what a model of the cache does, one client at a time and several at once"""
    with server.client() as client:
        Model(b"alone", seed, flushes=True).run(client, 300)

    def run(number):
        with server.client() as client:
            Model(b"m%d" % number, seed + number, flushes=False).run(client, 100)

    in_threads(*(lambda number=number: run(number) for number in range(1, 7)))


def check_sharing(server):
    """several clients change the same items, and no change is lost or seen by halves"""
    rounds, clients = 150, 6
    with server.client() as client:
        client.expect(set_text(b"total", b"0"), b"STORED")

    def run(number):
        with server.client() as client:
            for i in range(rounds):
                client.send(b"incr total 1\r\n")
                assert client.line().strip().isdigit()
                key = b"shared%d" % (i % 3)
                client.expect(set_text(key, b"%d" % number * (i * 131 % 20000)), b"STORED")
                client.expect(set_text(key, b"%d" % number, verb=b"append"), b"STORED")
                client.send(b"get %s\r\n" % key)
                words = client.line().split()
                value = client.file.read(int(words[3]) + 2)[:-2]
                assert len(set(value[:-clients])) <= 1, "a value is one of several clients"
                client.expect(b"", b"END")

    in_threads(*(lambda number=number: run(number) for number in range(clients)))
    with server.client() as client:
        size = len(str(rounds * clients))
        client.expect(b"get total\r\n", b"VALUE total 0 %d" % size, b"%d" % (rounds * clients), b"END")


def check_table(server):
    """the table grows, and loses nothing"""
    count = 20000
    with server.client() as client:
        client.send(b"".join(set_text(b"t%d" % i, b"%d" % i, more=b" noreply") for i in range(count)))
        for start in range(0, count, 500):
            keys = range(start, start + 500)
            client.expect(b"get " + b" ".join(b"t%d" % i for i in keys) + b"\r\n",
                          *(line for i in keys for line in (b"VALUE t%d 0 %d" % (i, len(str(i))), b"%d" % i)), b"END")
        assert int(client.stats(b" slabs")["hash_buckets"]) > count // 2


def check_nothing_is_held(server):
    """when all clients have gone, nobody holds memory of items that were deleted"""
    for _ in range(100):
        with server.client() as client:
            stats, slabs = client.stats(), client.stats(b" slabs")
        if stats["curr_connections"] == "1":
            break
        time.sleep(0.05)
    assert stats["curr_connections"] == "1", "connections are left that their clients have closed"
    used = sum(int(value) for name, value in slabs.items() if name.endswith(":used_chunks"))
    assert used == int(stats["curr_items"]), f"{used} chunks for {stats['curr_items']} items"


def check_options():
    """options are checked"""
    for options in [["-p", "65536"], ["-m", "0"], ["-t", "0"], ["-t", "x"], ["-x"], ["more"], ["-p"]]:
        run = subprocess.run([sys.argv[1], *options], capture_output=True, text=True, timeout=SECONDS_MAX)
        assert run.returncode == 2 and run.stderr and not run.stdout, options
    run = subprocess.run([sys.argv[1], "-h"], capture_output=True, text=True, timeout=SECONDS_MAX)
    assert run.returncode == 0 and run.stdout.startswith("usage: ")
    with socket.create_server(("127.0.0.1", 0)) as other:
        run = subprocess.run([sys.argv[1], "-p", str(other.getsockname()[1])], capture_output=True, text=True,
                             timeout=SECONDS_MAX)
        assert run.returncode == 1 and "-p" in run.stderr, run


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"seed {seed}")

    def passed(check):
        print(f"  {check.__doc__}", flush=True)

    check_options()
    passed(check_options)
    with Server("-t", "3", "-m", "64") as server:
        for check in [check_commands, check_unique, check_numbers, check_times, check_errors, check_quiet, check_sizes]:
            with server.client() as client:
                client.expect(b"flush_all\r\n", b"OK")
                check(client)
                passed(check)
        for check in [check_soak, check_noise]:
            check(server, seed)
            passed(check)
        for check in [check_pieces, check_sharing, check_table, check_nothing_is_held]:
            check(server)
            passed(check)
    with Server("-t", "2", "-m", "2") as server:
        for check in [check_eviction, check_slow_reader, check_nothing_is_held]:
            check(server)
            passed(check)


if __name__ == "__main__":
    main()
