#!/usr/bin/env python3
"""Draws the pictures in this folder, each in a light and a dark form.

    docs/pictures/draw.py           writes them
    docs/pictures/draw.py --check   fails if one is not what this script draws

The benchmark's bars are the figures of docs/internals/benchmarks.md: they are read from its tables.
"""

import pathlib
import sys
from html import escape

HERE = pathlib.Path(__file__).resolve().parent
FIGURES = HERE.parent / "internals" / "benchmarks.md"
SANS = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

THEMES = {
    "light": {
        "page": "#ffffff", "ink": "#1b1f24", "soft": "#59636e", "line": "#8c959f", "grid": "#e4e8ec",
        "front": "#eef4fd", "front_edge": "#7fa9e0", "client": "#fdf3ea", "client_edge": "#dd9a5f",
        "inner": "#ffffff", "below": "#edf7f0", "below_edge": "#74b58a", "media": "#f3f4f6", "media_edge": "#a8b0b9",
        "shadow": "#2a6fc9", "twin": "#8dbbf0", "LevelDB": "#dd6b33", "LMDB": "#1a9c73", "redb": "#7a5cc4",
    },
    "dark": {
        "page": "#0d1117", "ink": "#e6edf3", "soft": "#9aa4af", "line": "#6e7781", "grid": "#252c35",
        "front": "#14233a", "front_edge": "#4379be", "client": "#2e2013", "client_edge": "#b5763c",
        "inner": "#0d1117", "below": "#122a1b", "below_edge": "#3f8d5a", "media": "#1b2027", "media_edge": "#57606a",
        "shadow": "#4a90e8", "twin": "#27528a", "LevelDB": "#e27a45", "LMDB": "#27a981", "redb": "#957ae0",
    },
}


class Drawing:
    """An SVG that grows line by line."""

    def __init__(self, width, height, title, what, theme):
        self.theme = theme
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' role="img" aria-labelledby="title what">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="what">{escape(what)}</desc>',
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"'
            f' orient="auto-start-reverse"><path d="M0 1 10 5 0 9z" fill="{theme["line"]}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" rx="8" fill="{theme["page"]}"/>',
        ]

    def text(self, x, y, words, size=13, color="ink", anchor="start", bold=False, mono=False):
        weight = ' font-weight="600"' if bold else ""
        self.lines.append(
            f'<text x="{x:g}" y="{y:g}" font-family="{MONO if mono else SANS}" font-size="{size}"{weight}'
            f' text-anchor="{anchor}" fill="{self.theme[color]}">{escape(words)}</text>'
        )

    def rect(self, x, y, width, height, fill, edge=None, round_by=0):
        stroke = f' stroke="{self.theme[edge]}"' if edge else ""
        corner = f' rx="{round_by}"' if round_by else ""
        self.lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{corner}'
            f' fill="{self.theme[fill]}"{stroke}/>'
        )

    def line(self, points, color="line", arrow=False, dashed=False, width=1.5):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        end = ' marker-end="url(#tip)"' if arrow else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.lines.append(
            f'<polyline points="{path}" fill="none" stroke="{self.theme[color]}" stroke-width="{width}"{dash}{end}/>'
        )

    def box(self, x, y, width, height, kind, name, *rest):
        """A part: its name, and what it is in lines below."""
        self.rect(x, y, width, height, kind, f"{kind}_edge", 6)
        middle, step = x + width / 2, 17
        top = y + height / 2 - step * len(rest) / 2 + 5
        self.text(middle, top, name, 14, anchor="middle", bold=True, mono=True)
        for number, words in enumerate(rest, 1):
            self.text(middle, top + step * number, words, 12, "soft", "middle")

    def end(self):
        return "\n".join([*self.lines, "</svg>", ""])


def architecture(theme):
    """The crates of docs/internals/architecture.md; each arrow is a dependency in a Cargo.toml, the dashed one calls."""
    d = Drawing(
        920, 700, "How durum is built",
        "Layers from top to bottom. Front ends: the compiler durumcc, the C interfaces, the command. Below them the"
        " runtimes of compiled code and the key-value store, then the client durum, then durum-service, in the process"
        " or in the daemon durumd, then durum-format and durum-persist, through which all writes go to the media.",
        theme,
    )
    # Arrows first, so that boxes lie over their ends.
    d.line([(113, 82), (113, 138)], arrow=True, dashed=True)
    d.line([(250, 82), (250, 110), (180, 110), (180, 138)], arrow=True)
    d.line([(320, 82), (320, 242)], arrow=True)
    d.line([(487, 82), (487, 138)], arrow=True)
    d.line([(668, 82), (668, 138)], arrow=True)
    d.line([(788, 82), (788, 110), (716, 110), (716, 138)], arrow=True)
    d.line([(820, 82), (820, 242)], arrow=True)
    d.line([(146, 188), (146, 242)], arrow=True)
    d.line([(566, 188), (566, 242)], arrow=True)
    d.line([(400, 412), (400, 456)], arrow=True)
    d.line([(820, 412), (820, 456)], arrow=True)
    d.line([(80, 412), (80, 560)], arrow=True)
    d.line([(690, 412), (690, 560)], arrow=True)
    d.line([(250, 514), (250, 560)], arrow=True)
    d.line([(470, 514), (470, 560)], arrow=True)
    d.line([(590, 412), (590, 456)], arrow=True, dashed=True)
    d.line([(530, 488), (502, 488)], arrow=True)
    d.line([(660, 610), (660, 646)], arrow=True)

    d.box(30, 24, 166, 58, "front", "durumcc", "NVL-C; C with locks")
    d.box(212, 24, 166, 58, "front", "durum-capi", "libdurum: C and C++")
    d.box(394, 24, 186, 58, "front", "durum-kv-capi", "LevelDB's C and C++")
    d.box(596, 24, 144, 58, "front", "durum-kv-bench", "db_bench")
    d.box(756, 24, 134, 58, "front", "durum-cli", "the command")
    d.box(30, 140, 232, 48, "front", "durum-nvl, durum-ido", "runtimes of compiled code")
    d.box(394, 140, 346, 48, "front", "durum-kv", "key-value store")

    d.rect(30, 244, 860, 168, "client", "client_edge", 6)
    d.text(460, 268, "durum", 15, anchor="middle", bold=True, mono=True)
    d.text(50, 268, "the client", 12, "soft")
    inner = [
        (46, 278, 828, "durum::typed", "pools in Rust without unsafe; it stands on the interface below"),
        (46, 322, 264, "transactions", "what is announced, set, allocated"),
        (328, 322, 264, "engines", "Shadow, Hybrid, Twin"),
        (610, 322, 264, "sections", "changes that nobody announces"),
        (46, 366, 405, "allocator", "extents, slabs"),
        (469, 366, 405, "address space", "reserved addresses, mappings, faults"),
    ]
    for x, y, width, name, what in inner:
        d.rect(x, y, width, 36, "inner", "client_edge", 4)
        d.text(x + width / 2, y + 15, name, 12.5, anchor="middle", bold=True)
        d.text(x + width / 2, y + 29, what, 11, "soft", "middle")

    d.box(120, 458, 380, 62, "below", "durum-service",
          "a store directory: registry, lock, addresses,", "files, recovery, check")
    d.box(530, 458, 134, 62, "below", "durumd", "it as a daemon")
    d.box(730, 458, 160, 56, "below", "durum-derive", "what types derive")
    d.box(30, 562, 350, 48, "below", "durum-format", "every layout, its validation, replay")
    d.box(430, 562, 460, 48, "below", "durum-persist", "stores, write-back, fence, sync; crash simulator")
    d.rect(30, 648, 860, 34, "media", "media_edge", 6)
    d.text(460, 669, "the media: persistent memory (dax), a disk (file), shared memory (dram)", 13, anchor="middle")
    d.text(672, 632, "every byte that durum writes", 11.5, "soft")
    return d.end()


def migration(theme):
    """The steps of docs/internals/migration.md, and what a crash in each leaves."""
    steps = [
        ("1  check", "every object is converted", "and thrown away", "old", ""),
        ("2  make", "every object once more,", "into new puddles", "old", "coming"),
        ("3  swap", "one commit of the", "registry", "new", "removing"),
        ("4  remove", "the old files go", "", "new", ""),
    ]
    d = Drawing(
        920, 372, "A pool becomes one of other types",
        "Four steps. While all objects are checked and made, the registry names the old puddles; new puddles are listed as"
        " coming. One commit of the registry names the new puddles and lists the old ones as removing; then their files go."
        " A crash before that commit leaves the old pool, one behind it the new pool.",
        theme,
    )
    for number, (name, first, second, current, other) in enumerate(steps):
        left = 30 + 220 * number
        d.text(left, 36, name, 15, bold=True)
        d.text(left, 56, first, 12, "soft")
        d.text(left, 72, second, 12, "soft")
        # Arrows first, so that boxes lie over their ends.
        places = {"old": left + 46, "new": left + 154}
        d.line([(places[current], 142), (places[current], 212)], arrow=True, width=2)
        if other:
            # Above the swap the new ones are coming, behind it the old ones go.
            away = places["new" if current == "old" else "old"]
            d.line([(away, 142), (away, 212)], arrow=True, dashed=True)
            if current == "old":
                d.text(away - 9, 178, other, 12, "soft", "end")
            else:
                d.text(away + 9, 178, other, 12, "soft")
        d.rect(left, 94, 200, 48, "below", "below_edge", 6)
        d.text(left + 100, 123, "registry", 14, anchor="middle", bold=True, mono=True)
        for kind, look, x in (("old", "client", places["old"]), ("new", "front", places["new"])):
            if (kind == "new" and number == 0) or (kind == "old" and number == 3):
                continue
            d.rect(x - 46, 214, 92, 58, look, f"{look}_edge", 6)
            d.text(x, 239, kind, 14, anchor="middle", bold=True)
            d.text(x, 257, "puddles", 12, "soft", "middle")
    d.line([(30, 306), (460, 306)], "client_edge", width=3)
    d.line([(470, 306), (890, 306)], "front_edge", width=3)
    d.text(245, 330, "a crash here leaves the old pool;", 13, anchor="middle", bold=True)
    d.text(680, 330, "a crash here leaves the new pool;", 13, anchor="middle", bold=True)
    d.text(245, 350, "the next opener removes what was coming", 12, "soft", "middle")
    d.text(680, 350, "the next opener removes what is left of the old one", 12, "soft", "middle")
    return d.end()


def table(first_cell, after=""):
    """Rows of the first table in the page, behind the text `after`, whose header begins with this cell."""
    lines = FIGURES.read_text().split(after, 1)[1].splitlines() if after else FIGURES.read_text().splitlines()
    cells = [[cell.strip().strip("`") for cell in line.strip().strip("|").split("|")] for line in lines]
    start = next(number for number, row in enumerate(cells) if len(row) > 2 and row[:2] == first_cell)
    rows = []
    for line, row in zip(lines[start:], cells[start:]):
        if not line.strip().startswith("|"):
            break
        rows.append(row)
    return rows[0], {row[0]: row[1:] for row in rows[2:]}


def benchmark(theme):
    """Two tables of docs/internals/benchmarks.md as bars: beside libpmemobj in memory, beside databases on a disk."""
    names, sides = table(["", "swap_1"], "how many times as long libpmemobj takes beside them")
    memory = {
        "swap_1": "swap 1 pair", "swap_8": "swap 8 pairs", "swap_64": "swap 64 pairs",
        "list_append": "list, append", "list_pop": "list, take", "btree_insert": "B-tree, insert",
        "btree_delete": "B-tree, delete", "kv_load": "map, insert", "kv_a": "map, YCSB A", "kv_b": "map, YCSB B",
    }
    if set(memory) != set(names[1:]):
        sys.exit(f"{FIGURES}: the table beside libpmemobj has other rows than this script knows")
    upper = [
        (label, [(side, sides[side][names.index(row) - 1]) for side in ("shadow", "twin")])
        for row, label in memory.items()
    ]
    columns, puts = table(["", "overwrite"], "Measured on ext4")
    disk = {
        "put_seq_100": "new, 100 bytes", "put_random_100": "update, 100 bytes", "put_seq_4096": "new, 4 KiB",
        "put_random_4096": "update, 4 KiB", "put_threads_8": "8 threads, 100 bytes",
    }
    if set(disk) != set(puts):
        sys.exit(f"{FIGURES}: the table of puts has other rows than this script knows")
    lower = [
        (label, [(peer, puts[row][columns.index(peer) - 1]) for peer in ("LevelDB", "LMDB", "redb")])
        for row, label in disk.items()
    ]

    d = Drawing(
        920, 560, "How many times as long as durum others take",
        "Bars. Left: libpmemobj beside durum's engines Shadow and Twin, in memory. Right: a durable put of LevelDB, LMDB"
        " and redb beside durum's engine Shadow, on a disk. " + "; ".join(
            label + ": " + ", ".join(f"{name} {value}" for name, value in bars if value)
            for label, bars in upper + lower
        ) + ".",
        theme,
    )
    d.text(30, 38, "How many times as long as durum others take", 18, bold=True)
    d.text(30, 60, "Longer bars: durum is faster. The line at 1 is durum itself.", 13, "soft")
    panel(d, 30, "Transactions in memory", "libpmemobj, as a multiple of durum's engine",
          {"shadow": "Shadow", "twin": "Twin"}, upper, 30, 10)
    panel(d, 500, "A durable put on a disk", "each as a multiple of durum's engine Shadow",
          {name: name for name in ("LevelDB", "LMDB", "redb")}, lower, 11, 2)
    d.text(30, 526, "tmpfs with the same write-back instruction on all sides,", 11.5, "soft")
    d.text(30, 542, "one thread; three rounds by processor time", 11.5, "soft")
    d.text(500, 526, "ext4 on a virtual disk with a write-back cache, two", 11.5, "soft")
    d.text(500, 542, "processors; three rounds; mean time of a put", 11.5, "soft")
    return d.end()


def panel(d, left, title, subtitle, series, rows, top_value, step):
    """Bars of one table: a group for each row, a bar for each of the series."""
    axis, right, top, bottom = left + 142, left + 362, 158, 500
    scale = (right - axis) / top_value
    d.text(left, 96, title, 15, bold=True)
    d.text(left, 115, subtitle, 12.5, "soft")
    x = left
    for key, name in series.items():
        d.rect(x, 129, 12, 12, key, round_by=2)
        d.text(x + 18, 140, name, 12.5)
        x += 46 + 7 * len(name)
    for value in range(0, top_value + 1, step):
        d.line([(axis + value * scale, top), (axis + value * scale, bottom - 14)], "grid", width=1)
        d.text(axis + value * scale, bottom, str(value), 11, "soft", "middle")
    group = (bottom - 14 - top) / len(rows)
    thick = min(13, (group - 8) / len(series))
    for number, (label, bars) in enumerate(rows):
        bars = [(key, value) for key, value in bars if value]
        y = top + group * number + (group - thick * len(bars)) / 2
        d.text(axis - 8, top + group * (number + 0.5) + 4, label, 12.5, anchor="end")
        for key, value in bars:
            length = float(value) * scale
            d.rect(axis, y + 0.75, length, thick - 1.5, key, round_by=2)
            d.text(axis + length + 5, y + thick / 2 + 4, value, 11)
            y += thick
    d.line([(axis + scale, top), (axis + scale, bottom - 14)], "ink", width=1)


def main():
    stale = []
    for picture in (architecture, benchmark, migration):
        for name, theme in THEMES.items():
            path = HERE / f"{picture.__name__}-{name}.svg"
            drawn = picture(theme)
            if sys.argv[1:] != ["--check"]:
                path.write_text(drawn)
            elif not path.exists() or path.read_text() != drawn:
                stale.append(path.name)
    if stale:
        sys.exit(f"docs/pictures: not what draw.py draws: {', '.join(stale)}; draw them with docs/pictures/draw.py")


main()
