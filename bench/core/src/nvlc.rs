//! The suite of NVL-C: kernels in C (`bench/nvlc`), compiled as plain C by Clang and by durumcc with the options that
//! the symbols of the paper's Table 3 stand for, so that its Figures 5 to 7 can be drawn.

use crate::kernels::{Bar, Build, CompileTime, Compiler, Program, Side, Suite};
use crate::side::Role;
use crate::workload::Row;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "nvlc",
    title: "Time of NVL-C programs as a multiple of plain C",
    on_disk: true,
    dir: "bench/nvlc",
    options: &[
        "-O2",
        "-std=gnu11",
        "-ffp-contract=off",
        "-Wall",
        "-Werror",
        "-Wno-unknown-pragmas",
        "-Iexamples/nvl",
    ],
    programs: PROGRAMS,
    bars: BARS,
    compile: CompileTime {
        builds: &[
            Build {
                name: "clang",
                ..PLAIN_C
            },
            side("durumcc", &[]).build,
        ],
        headers: &["\"kernel.h\"", "<math.h>", "<string.h>"],
        // What a kernel shares with an example comes first.
        sources: &["examples/nvl/{program}.h", "bench/nvlc/{program}.c"],
    },
};

/// Plain C in the place of NVL-C.
const PLAIN_C: Build = Build {
    name: "plain",
    compiler: Compiler::Clang,
    options: &["-Ibench/nvlc/plain"],
    sources: &["bench/nvlc/plain/memory.c"],
};

const fn side(name: &'static str, options: &'static [&'static str]) -> Side {
    Side {
        name,
        role: Role::Engine,
        has_heap: true,
        can_delay: false,
        build: Build {
            name,
            compiler: Compiler::Durumcc,
            options,
            sources: &[],
        },
    }
}

const PLAIN: Side = Side {
    name: "plain",
    role: Role::Peer,
    has_heap: false,
    can_delay: false,
    build: PLAIN_C,
};
/// The plain program in memory of the place.
const EXM: Side = Side {
    name: "exm",
    role: Role::Engine,
    has_heap: true,
    can_delay: false,
    build: PLAIN_C,
};
/// The same, and lines are written back where the kernel says so.
const FLUSH1: Side = Side {
    name: "flush1",
    role: Role::Limit,
    has_heap: true,
    can_delay: false,
    build: Build {
        name: "flush1",
        options: &["-Ibench/nvlc/plain", "-DFLUSH1=\"{write_back}\""],
        ..PLAIN_C
    },
};
/// The plain program in memory of its own: what it has written is copied to the place past the cache where the kernel
/// says so. The limit for large ranges.
const STREAM1: Side = Side {
    name: "stream1",
    build: Build {
        name: "stream1",
        options: &["-Ibench/nvlc/plain", "-DSTREAM1"],
        ..PLAIN_C
    },
    ..FLUSH1
};
const B: Side = side(
    "b",
    &[
        "-fnvl-relaxed",
        "-fnvl-no-transactions",
        "-fnvl-no-counts",
        "-fnvl-no-checks",
    ],
);
const BS: Side = side(
    "bs",
    &["-fnvl-relaxed", "-fnvl-no-transactions", "-fnvl-no-counts"],
);
const BSR: Side = side("bsr", &["-fnvl-relaxed", "-fnvl-no-transactions"]);
const T0: Side = side("t0", &["-fnvl-no-transactions"]);
const T1: Side = side("t1", &["-fnvl-no-clauses"]);
const T2: Side = side("t2", &["-fnvl-no-clobber"]);
const T3: Side = side("t3", &[]);
const T4: Side = side("t4", &["-DPER_LOOP"]);

const fn row(name: &'static str, one_op: &'static str) -> Row {
    Row { name, one_op }
}

/// Figures 5, 6 and 7; the list is not in the paper.
const PROGRAMS: &[Program] = &[
    Program {
        name: "fill",
        rows: &[
            row("fill", "a store to an array of 65,536 numbers, one by one"),
            row(
                "fill_until",
                "a store to one of two arrays, by turns, as far as the input goes",
            ),
        ],
        sides: &[PLAIN, FLUSH1, STREAM1, EXM, T0],
        size: 1 << 16,
        least: 1000,
        most: 20_000_000,
        is_divisible: true,
        on_disk: false,
    },
    Program {
        name: "fill_large",
        rows: &[
            row("fill_256m", "the same, 34 million numbers"),
            row("fill_until_256m", "the same, two arrays of as many"),
        ],
        sides: &[PLAIN, FLUSH1, STREAM1, T0],
        // No power of two: arrays that are one apart hinder each other.
        size: 34_000_000,
        least: 1000,
        most: 68_000_000,
        is_divisible: true,
        on_disk: false,
    },
    Program {
        name: "triad",
        rows: &[row("triad", "an element of 8 bytes, of 100,000")],
        sides: &[PLAIN, FLUSH1, STREAM1, EXM, B, BS, BSR, T0, T1, T4],
        size: 100_000,
        least: 100,
        most: 20_000_000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "matmul",
        rows: &[row(
            "matmul",
            "a row of the product of two matrices of 256 x 256 floats; a transaction of 8",
        )],
        sides: &[PLAIN, FLUSH1, EXM, B, BS, BSR, T0, T1, T2, T3],
        size: 256,
        least: 16,
        most: 512,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "jacobi",
        rows: &[row(
            "jacobi",
            "a sweep over 256 x 256 doubles, a transaction",
        )],
        sides: &[PLAIN, FLUSH1, STREAM1, EXM, B, BS, BSR, T0, T1, T2, T3],
        size: 256,
        least: 3,
        most: 1000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "jacobi_large",
        rows: &[row(
            "jacobi_2048",
            "a sweep over 2,048 x 2,048 doubles, a transaction",
        )],
        sides: &[PLAIN, FLUSH1, STREAM1, T2, T3],
        size: 2048,
        least: 3,
        most: 20,
        is_divisible: true,
        on_disk: false,
    },
    Program {
        name: "lookup",
        rows: &[row(
            "lookup",
            "a lookup in up to 32 tables of 2,000 points; a transaction of 1,000",
        )],
        sides: &[PLAIN, FLUSH1, EXM, B, BS, BSR, T0, T1, T2, T3],
        size: 2000,
        least: 2000,
        most: 50_000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "shock",
        rows: &[row("shock", "a step of 2,000 cells, a transaction")],
        sides: &[PLAIN, FLUSH1, EXM, B, BS, BSR, T0, T1, T2, T3],
        size: 2000,
        least: 3,
        most: 1000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "list",
        rows: &[
            row("list_read", "a walk over 4,096 nodes"),
            row("list_write", "the same, in which each is changed"),
            row(
                "list_apart",
                "a walk over nodes that are allocations of their own",
            ),
        ],
        sides: &[PLAIN, FLUSH1, EXM, B, BS, BSR, T0],
        size: 4096,
        least: 3,
        most: 700,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "hash",
        rows: &[
            row("hash_insert", "a key is inserted, a transaction"),
            row("hash_update", "its value is changed, a transaction"),
            row("hash_read", "it is read"),
            row("hash_delete", "it is deleted, a transaction, and freed"),
        ],
        sides: &[PLAIN, FLUSH1, EXM, B, BS, BSR, T0, T1],
        size: 16_384,
        least: 40,
        most: 10_000,
        is_divisible: false,
        on_disk: true,
    },
];

const fn bar(row: &'static str, side: &'static str, reference: &'static str, most: f64) -> Bar {
    Bar {
        row,
        domain: "dram",
        side,
        reference,
        most,
    }
}

const BARS: &[Bar] = &[
    bar("triad", "bsr", "plain", 1.05),
    bar("matmul", "bsr", "plain", 1.05),
    bar("list_read", "bsr", "plain", 1.05),
    bar("list_write", "bsr", "plain", 1.05),
    bar("matmul", "t3", "plain", 1.1),
    bar("triad", "t4", "plain", 2.0),
    bar("jacobi", "t2", "plain", 1.9),
    bar("jacobi_2048", "t2", "plain", 2.0),
    bar("hash_update", "t1", "flush1", 1.5),
    Bar {
        row: "compile",
        domain: "none",
        side: "durumcc",
        reference: "clang",
        most: 1.3,
    },
];
