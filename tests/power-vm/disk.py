"""An nbdkit plugin: a disk with a volatile write cache, which loses power when its client goes.

What a write brings stays in memory until a flush, or goes to the file at once if the client asks for that (FUA). When
the connection ends, each sector with unflushed writes gets the bytes of one of them or keeps the old ones, by chance
(seed=N): the order of unflushed writes is nobody's promise, and only a sector is written whole.

    nbdkit --unix SOCKET python disk.py file=IMAGE seed=N
"""

import os
import random

import nbdkit

API_VERSION = 2
SECTOR = 512

options = {"file": None, "seed": "0"}
fd = -1
# Of each sector with unflushed writes, their contents from the oldest to the newest.
unflushed = {}


def config(key, value):
    if key not in options:
        raise RuntimeError(f"disk.py knows no parameter {key}")
    options[key] = value


def config_complete():
    if options["file"] is None:
        raise RuntimeError("disk.py needs file=IMAGE")


def get_ready():
    global fd
    fd = os.open(options["file"], os.O_RDWR | os.O_CLOEXEC)


def thread_model():
    return nbdkit.THREAD_MODEL_SERIALIZE_ALL_REQUESTS


def open(readonly):
    return 1


def get_size(handle):
    return os.fstat(fd).st_size


def block_size(handle):
    return (SECTOR, 4096, 32 << 20)


def can_write(handle):
    return True


def can_flush(handle):
    return True


def can_fua(handle):
    return nbdkit.FUA_NATIVE


def pread(handle, buf, offset, flags):
    data = bytearray(os.pread(fd, len(buf), offset))
    for at in range(0, len(data), SECTOR):
        versions = unflushed.get(offset + at)
        if versions:
            data[at : at + SECTOR] = versions[-1]
    buf[:] = data


def pwrite(handle, buf, offset, flags):
    data = bytes(buf)
    for at in range(0, len(data), SECTOR):
        sector = data[at : at + SECTOR]
        if flags & nbdkit.FLAG_FUA:
            unflushed.pop(offset + at, None)
            os.pwrite(fd, sector, offset + at)
        else:
            unflushed.setdefault(offset + at, []).append(sector)


def flush(handle, flags):
    for offset, versions in unflushed.items():
        os.pwrite(fd, versions[-1], offset)
    unflushed.clear()


def close(handle):
    chance = random.Random(int(options["seed"]))
    # Sometimes much of the cache has reached the disk before, sometimes nearly nothing.
    kept_share = chance.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    lost = 0
    for offset, versions in unflushed.items():
        if chance.random() < kept_share:
            os.pwrite(fd, chance.choice(versions), offset)
        else:
            lost += 1
    nbdkit.debug(f"power lost: {lost} of {len(unflushed)} unflushed sectors keep their old bytes")
    unflushed.clear()
