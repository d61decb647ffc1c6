#!/usr/bin/env python3
"""How the regions of the programs of examples/locks are distributed (iDO, Figure 8): words of live-ins, and stores.

    regions.py DURUMCC [OPERATIONS]
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples" / "locks"
STRUCTURES = ("stack", "queue", "list", "map")

sys.dont_write_bytecode = True
sys.path.insert(0, str(EXAMPLES / "cache"))
from test import Client, set_text  # noqa: E402


def run(*command, **environment):
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment)
    return done.stderr


def serve(cache, heap, operations):
    """Sets and gets of 16-byte keys and 8-byte values, half of each."""
    server = subprocess.Popen([cache, "-p", "0", "-d", heap], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    client = Client(int(server.stdout.readline().split()[1]))
    for number in range(operations):
        key = b"%016d" % random.randrange(10000)
        if number % 2:
            client.expect(set_text(key, b"%08d" % number), b"STORED")
        else:
            client.send(b"get %s\r\n" % key)
            while client.line() != b"END\r\n":
                pass
    server.send_signal(signal.SIGTERM)
    return server.communicate()[1]


def main():
    durumcc, operations = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    os.environ["DURUM_STATS"] = "1"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        subprocess.run([EXAMPLES / "durable.sh", durumcc, work, "-O2"], check=True)
        objects = [f"{work}/structures.o/{name}.c.o" for name in STRUCTURES]
        subprocess.run([durumcc.removesuffix("cc") + "c++", "-fido", "-O2", f"-I{work}/source/structures", HERE / "regions.cpp",
                        *objects, "-o", f"{work}/regions", "-pthread"], check=True)
        for name in STRUCTURES:
            print(name, run(f"{work}/regions", name, str(operations), DURUM_HEAP=f"{work}/{name}"), sep="\n")
        print("store", run(f"{work}/store", "10000", str(operations), DURUM_HEAP=f"{work}/heap-of-store"), sep="\n")
        print("cache", serve(f"{work}/cache", f"{work}/heap-of-cache", operations), sep="\n")


if __name__ == "__main__":
    main()
