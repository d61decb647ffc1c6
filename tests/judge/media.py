"""What a disk may hold after a power cut, given the calls that a program made.

Each thing that is not durable has versions, the durable one and newer ones, and a power cut picks one for each:

* a sector of 512 bytes of a file: as it was at the file's last sync, or as any later write left it;
* a file's size, likewise;
* a name, made, renamed or removed: as it was at the directory's last sync, or changed.

A sync covers what ended before it began. Sizes and contents, names and contents do not wait for each other: a name may
be there without the bytes of its file. That is less than most file systems promise.
"""

import os

from calls import Surprise

SECTOR = 512
ZEROS = bytes(SECTOR)
CHUNK = 1 << 16
ZERO_CHUNK = bytes(CHUNK)
NEVER = 1 << 62


class Change:
    """One change of one thing: when it began and ended, as indices of moments."""

    __slots__ = ("begun", "ended")

    def __init__(self, begun):
        self.begun = begun
        self.ended = NEVER


class File:
    def __init__(self, content=b""):
        self.content = bytearray(content)  # durable; what lies behind the size is no part of the file
        self.size = len(content)
        self.sectors = {}  # sector: its newer versions, pairs of a change and bytes
        self.sizes = []  # newer sizes, pairs of a change and a number

    def newest_size(self):
        return self.sizes[-1][1] if self.sizes else self.size

    def durable_sector(self, sector):
        found = bytes(self.content[sector * SECTOR : (sector + 1) * SECTOR])
        return found + ZEROS[len(found) :]

    def write(self, change, offset, data):
        end = offset + len(data)
        for sector in range(offset // SECTOR, (end + SECTOR - 1) // SECTOR):
            versions = self.sectors.setdefault(sector, [])
            old = versions[-1][1] if versions else self.durable_sector(sector)
            at = sector * SECTOR
            low, high = max(offset, at), min(end, at + SECTOR)
            versions.append((change, old[: low - at] + data[low - offset : high - offset] + old[high - at :]))
        if end > self.newest_size():
            self.sizes.append((change, end))

    def resize(self, change, size):
        old = self.newest_size()
        if size < old:
            # What was cut off is zero if the file grows again.
            held = max([len(self.content)] + [(sector + 1) * SECTOR for sector in self.sectors])
            if held > size:
                self.write(change, size, bytes(min(old, held) - size))
        if size != old:
            self.sizes.append((change, size))

    def sync(self, begun):
        for sector, versions in list(self.sectors.items()):
            covered = sum(change.ended < begun for change, _ in versions)
            if covered:
                end = (sector + 1) * SECTOR
                self.content.extend(bytes(max(0, end - len(self.content))))
                self.content[end - SECTOR : end] = versions[covered - 1][1]
                del versions[:covered]
                if not versions:
                    del self.sectors[sector]
        covered = sum(change.ended < begun for change, _ in self.sizes)
        if covered:
            self.size = self.sizes[covered - 1][1]
            del self.sizes[:covered]


class Directory:
    def __init__(self):
        self.names = {}  # durable
        self.newest = {}


class Naming(Change):
    """A change of names, which happens as a whole: of each directory, which names go and which come."""

    __slots__ = ("removed", "added")

    def __init__(self, begun, removed, added):
        super().__init__(begun)
        self.removed = removed  # (directory, name, what it leads to)
        self.added = added

    def concerns(self, directory):
        return any(where is directory for where, _, _ in self.removed + self.added)

    def apply(self, names):
        """`names` gives the names of a directory."""
        for directory, name, inode in self.removed:
            if names(directory).get(name) is inode:
                del names(directory)[name]
        for directory, name, inode in self.added:
            names(directory)[name] = inode


def load(path):
    """A file or a directory as it is now, all of it durable."""
    if not os.path.isdir(path):
        with open(path, "rb") as file:
            return File(file.read())
    directory = Directory()
    for name in os.listdir(path):
        directory.newest[name] = directory.names[name] = load(os.path.join(path, name))
    return directory


class Media:
    """All below one directory."""

    def __init__(self, top, root):
        self.top = top
        self.root = root
        self.namings = []  # not durable
        self.unnamed = {}  # path that a removed file had: the file
        self.readable_mappings = []  # shared mappings of files here, (start, end, path)
        self.syncs = 0  # how many made anything durable
        self.pending = {}  # call that has begun: its change, or what its end does

    # ---- paths

    def holds(self, path):
        return path is not None and (path == self.top or path.startswith(self.top + "/"))

    def find(self, path):
        inode = self.root
        for name in os.path.relpath(path, self.top).split("/"):
            if name != ".":
                inode = inode.newest.get(name) if isinstance(inode, Directory) else None
        return inode

    def place(self, path):
        """The directory that holds a path, and the name there."""
        path = os.path.normpath(path)
        return self.find(os.path.dirname(path)), os.path.basename(path)

    def of_descriptor(self, call, index):
        """The file or directory of a descriptor; None if it is not on these media."""
        _, path, is_unnamed = call.descriptor(index)
        if not self.holds(path):
            return None
        if is_unnamed:
            return self.unnamed.get(path)  # None: it never had a name
        inode = self.find(path)
        if inode is None:
            raise Surprise(f"a descriptor of a file that nobody made: {call}")
        return inode

    # ---- calls

    def take(self, moment, call, ends):
        """Takes one moment of a call into account. True if the media, or what may be on them, are different now."""
        handler = getattr(self, "call_" + call.name, None)
        if handler is None:
            if not ends and call.name not in HARMLESS:
                self.refuse_unknown(call)
            return False
        has_failed = call.result is not None and call.result < 0
        if not ends:
            if has_failed and call.name not in ("fsync", "fdatasync"):
                return False
            # What has begun may have had its effect when the power goes.
            self.pending[call] = handler(moment, call)
            return isinstance(self.pending[call], Change)
        begun = self.pending.pop(call, None)
        if begun is None:
            return False
        if has_failed:
            raise Surprise(f"a change that failed: {call}")
        if isinstance(begun, Change):
            begun.ended = moment
        else:
            begun()
        return True

    def forget(self, call):
        """A sync ends, and has made nothing durable."""
        del self.pending[call]

    def refuse_unknown(self, call):
        for index in range(len(call.arguments)):
            _, path, _ = call.descriptor(index)
            if call.arguments[index].startswith('"') and len(call.arguments[index]) < 20000:
                path = call.bytes(index).decode(errors="replace")
            if self.holds(path):
                raise Surprise(f"the judge does not know what this does to files: {call}")
        if call.name in ("sync", "io_uring_setup", "io_setup"):
            raise Surprise(f"the judge cannot tell what this does: {call}")

    def change_names(self, moment, removed, added):
        naming = Naming(moment, removed, added)
        naming.apply(lambda directory: directory.newest)
        self.namings.append(naming)
        return naming

    def opened(self, moment, call, path, flags):
        if not self.holds(path):
            return None
        if "O_TMPFILE" in flags:
            return None
        if flags & {"O_SYNC", "O_DSYNC", "O_DIRECT"}:
            raise Surprise(f"writes that are syncs, or go past the page cache: {call}")
        inode = self.find(path)
        if inode is None:
            directory, name = self.place(path)
            if "O_CREAT" in flags and directory is not None:
                return self.change_names(moment, [], [(directory, name, File())])
        elif "O_TRUNC" in flags and isinstance(inode, File) and inode.newest_size() > 0:
            change = Change(moment)
            inode.resize(change, 0)
            return change
        return None

    def call_openat(self, moment, call):
        return self.opened(moment, call, call.path(1), call.flags(2))

    def call_open(self, moment, call):
        return self.opened(moment, call, call.path(0), call.flags(1))

    def call_creat(self, moment, call):
        return self.opened(moment, call, call.path(0), {"O_CREAT", "O_TRUNC"})

    def written(self, moment, call, data, offset):
        file = self.of_descriptor(call, 0)
        if file is None:
            return None
        change = Change(moment)
        file.write(change, offset, data)
        return change

    def call_pwrite64(self, moment, call):
        if not self.holds(call.descriptor(0)[1]):
            return None
        return self.written(moment, call, call.bytes(1), call.number(3))

    def call_pwritev(self, moment, call):
        if not self.holds(call.descriptor(0)[1]):
            return None
        return self.written(moment, call, call.vector(1), call.number(3))

    def call_pwritev2(self, moment, call):
        if self.holds(call.descriptor(0)[1]) and call.arguments[4] != "0":
            raise Surprise(f"flags of a write: {call}")
        return self.call_pwritev(moment, call)

    def call_ftruncate(self, moment, call):
        file = self.of_descriptor(call, 0)
        if file is None:
            return None
        change = Change(moment)
        file.resize(change, call.number(1))
        return change

    def call_fallocate(self, moment, call):
        file = self.of_descriptor(call, 0)
        if file is None:
            return None
        end = call.number(2) + call.number(3)
        change = Change(moment)
        if call.arguments[1] not in ("0", "FALLOC_FL_KEEP_SIZE"):
            raise Surprise(f"flags of fallocate: {call}")
        if call.arguments[1] == "0" and end > file.newest_size():
            file.resize(change, end)
        return change

    def call_fsync(self, moment, call):
        inode = self.of_descriptor(call, 0)
        if inode is None:
            return None
        return lambda: self.sync(inode, moment)

    call_fdatasync = call_fsync

    def sync(self, inode, begun):
        self.syncs += 1
        if isinstance(inode, File):
            inode.sync(begun)
            return
        for naming in [naming for naming in self.namings if naming.concerns(inode) and naming.ended < begun]:
            naming.apply(lambda directory: directory.names)
            self.namings.remove(naming)

    def renamed(self, moment, call, source, target):
        if not self.holds(source) and not self.holds(target):
            return None
        inode = self.find(source) if self.holds(source) else None
        if inode is None:
            raise Surprise(f"a name from elsewhere: {call}")
        (old, old_name), (new, new_name) = self.place(source), self.place(target)
        if new is None:
            raise Surprise(f"a name that leaves: {call}")
        self.lost(new, new_name, target)
        return self.change_names(moment, [(old, old_name, inode)], [(new, new_name, inode)])

    def lost(self, directory, name, path):
        if directory is not None and name in directory.newest:
            self.unnamed[path] = directory.newest[name]

    def call_rename(self, moment, call):
        return self.renamed(moment, call, call.path(0), call.path(1))

    def call_renameat(self, moment, call):
        return self.renamed(moment, call, call.path(1), call.path(3))

    def call_renameat2(self, moment, call):
        path = call.path(1)
        if self.holds(path) and call.arguments[4] not in ("0", "RENAME_NOREPLACE"):
            raise Surprise(f"flags of a rename: {call}")
        return self.renamed(moment, call, path, call.path(3))

    def removed(self, moment, call, path):
        inode = self.find(path) if self.holds(path) else None
        if inode is None:
            return None
        directory, name = self.place(path)
        self.lost(directory, name, path)
        return self.change_names(moment, [(directory, name, inode)], [])

    def call_unlink(self, moment, call):
        return self.removed(moment, call, call.path(0))

    call_rmdir = call_unlink

    def call_unlinkat(self, moment, call):
        return self.removed(moment, call, call.path(1))

    def made_directory(self, moment, path):
        if not self.holds(path) or self.find(path) is not None:
            return None
        directory, name = self.place(path)
        return self.change_names(moment, [], [(directory, name, Directory())])

    def call_mkdir(self, moment, call):
        return self.made_directory(moment, call.path(0))

    def call_mkdirat(self, moment, call):
        return self.made_directory(moment, call.path(1))

    def linked(self, moment, call, source, target):
        if not self.holds(target):
            return None
        inode = self.find(source)
        if inode is None or self.find(target) is not None:
            raise Surprise(f"a link that the judge does not understand: {call}")
        directory, name = self.place(target)
        return self.change_names(moment, [], [(directory, name, inode)])

    def call_link(self, moment, call):
        return self.linked(moment, call, call.path(0), call.path(1))

    def call_linkat(self, moment, call):
        return self.linked(moment, call, call.path(1), call.path(3))

    def call_mmap(self, _, call):
        _, path, is_unnamed = call.descriptor(4)
        protection, flags = call.flags(2), call.flags(3)
        if not self.holds(path) or "MAP_PRIVATE" in flags or (is_unnamed and path not in self.unnamed):
            return None
        if "PROT_WRITE" in protection:
            raise Surprise(f"stores to a shared mapping reach the media unseen: {call}")
        return lambda: self.readable_mappings.append((call.result, call.result + call.number(1), path))

    def call_mprotect(self, _, call):
        start, size = call.number(0), call.number(1)
        for low, high, path in self.readable_mappings:
            if "PROT_WRITE" in call.flags(2) and start < high and low < start + size:
                raise Surprise(f"a shared mapping of {path} becomes writable: {call}")
        return None

    def call_munmap(self, _, call):
        start, size = call.number(0), call.number(1)
        self.readable_mappings = [
            (low, high, path) for low, high, path in self.readable_mappings if not start <= low < high <= start + size
        ]
        return None

    # ---- what a power cut leaves

    def reachable(self):
        """All files and directories that some name leads to, or may lead to, with a path for people."""
        found, todo = {}, [(self.root, "")]
        while todo:
            inode, path = todo.pop()
            if inode in found:
                continue
            found[inode] = path
            if isinstance(inode, Directory):
                todo += [(child, f"{path}/{name}") for name, child in {**inode.names, **inode.newest}.items()]
                todo += [
                    (child, f"{path}/{name}")
                    for naming in self.namings
                    for where, name, child in naming.removed + naming.added
                    if where is inode
                ]
        return found

    def units(self):
        """The things that are not durable: of each its key, its file's path and how many newer versions it has."""
        units = [((naming, "name"), "/", 1) for naming in self.namings]
        for inode, path in self.reachable().items():
            if isinstance(inode, File):
                units += [((inode, sector), path, len(versions)) for sector, versions in inode.sectors.items()]
                if inode.sizes:
                    units.append(((inode, "size"), path, len(inode.sizes)))
        return units

    def version(self, key, number):
        """The change that made this version of a unit."""
        what, part = key
        if part == "name":
            return what
        return (what.sizes if part == "size" else what.sectors[part])[number - 1][0]

    def write_image(self, path, choice):
        """Writes a directory as a power cut may leave it. `choice` gives units' versions, if not the durable ones."""
        names = {}

        def names_of(directory):
            if directory not in names:
                names[directory] = dict(directory.names)
            return names[directory]

        for naming in self.namings:
            if choice.get((naming, "name")):
                naming.apply(names_of)
        by_file = {}
        for (what, part), number in choice.items():
            if part != "name" and number:
                by_file.setdefault(what, {})[part] = number
        made = {}
        todo = [(self.root, path)]
        while todo:
            inode, place = todo.pop()
            if isinstance(inode, Directory):
                os.mkdir(place)
                todo += [(child, f"{place}/{name}") for name, child in names_of(inode).items()]
            elif inode in made:
                os.link(made[inode], place)
            else:
                made[inode] = place
                write_file(place, inode, by_file.get(inode, {}))


def write_file(place, file, choice):
    size = file.sizes[choice["size"] - 1][1] if "size" in choice else file.size
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.ftruncate(descriptor, size)
        view = memoryview(file.content)
        for at in range(0, min(size, len(view)), CHUNK):
            chunk = view[at : min(at + CHUNK, size)]
            if chunk != ZERO_CHUNK[: len(chunk)]:
                os.pwrite(descriptor, chunk, at)
        for sector, number in choice.items():
            if sector != "size" and sector * SECTOR < size:
                data = file.sectors[sector][number - 1][1]
                os.pwrite(descriptor, data[: size - sector * SECTOR], sector * SECTOR)
    finally:
        os.close(descriptor)


# Calls that change nothing that lasts, whatever they are given.
HARMLESS = frozenset(
    """
    read pread64 readv preadv preadv2 lseek close dup dup2 dup3 fcntl flock fstat newfstatat stat lstat statx fstatfs
    statfs access faccessat faccessat2 readlink readlinkat getdents64 getcwd poll ppoll select pselect6 epoll_ctl
    epoll_wait epoll_pwait eventfd2 pipe2 execve readahead fadvise64 madvise brk mincore mlock munlock mlock2
    sync_file_range getxattr fgetxattr lgetxattr umask
    """.split()
)
