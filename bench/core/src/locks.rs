//! The suite of code that holds locks (`bench/locks`): the same text as plain C, made durable by hand in several ways,
//! and unchanged, compiled by durumcc and completed after a crash. The counterparts of Figures 7 and 9 of the iDO paper
//! (MICRO'18, §V).
//!
//! By hand there are libpmemobj, which has the place of NVML; Hybrid, which logs what was there before, as Atlas does;
//! Shadow, which logs what is there then, as Mnemosyne and NVThreads do; and JUSTDO, with an entry in front of each
//! store.

use crate::kernels::{Bar, Build, CompileTime, Compiler, Program, Side, Suite};
use crate::side::Role;
use crate::workload::Row;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "locks",
    title: "Time of sections as a multiple of plain C",
    on_disk: false,
    dir: "bench/locks",
    options: &["-O2", "-std=gnu11", "-pthread", "-Wall", "-Werror"],
    programs: PROGRAMS,
    bars: BARS,
    compile: CompileTime {
        builds: &[
            Build {
                name: "clang",
                options: &["-Ibench/locks/resume", "-I{prefix}/lib/durumcc/include"],
                ..ARENA
            },
            Build {
                name: "durumcc",
                ..RESUME_C
            },
        ],
        headers: &["\"kernel.h\""],
        sources: &["bench/locks/{program}.c"],
    },
};

const ARENA: Build = Build {
    name: "plain",
    compiler: Compiler::Clang,
    options: &["-Ibench/locks/arena"],
    sources: &["bench/locks/arena/arena.c"],
};
const POOL: Build = Build {
    name: "pool",
    compiler: Compiler::ClangWithDurum,
    options: &[],
    sources: &["bench/locks/durum/pool.c"],
};
const RESUME_C: Build = Build {
    name: "resume",
    compiler: Compiler::Durumcc,
    options: &["-fido", "-Ibench/locks/resume", "-I{prefix}/include"],
    sources: &["bench/locks/resume/heap.c"],
};

/// A side in a heap of its own, with a build that has its name.
const fn side(role: Role, build: Build) -> Side {
    Side {
        name: build.name,
        role,
        has_heap: true,
        can_delay: true,
        build,
    }
}

const PLAIN: Side = Side {
    has_heap: false,
    ..side(Role::Peer, ARENA)
};
const FLUSH1: Side = side(
    Role::Limit,
    Build {
        name: "flush1",
        options: &["-Ibench/locks/arena", "-DFLUSH1=\"{write_back}\""],
        ..ARENA
    },
);
const JUSTDO: Side = side(
    Role::Peer,
    Build {
        name: "justdo",
        options: &["-Ibench/locks/arena", "-DJUSTDO=\"{write_back}\""],
        ..ARENA
    },
);
const PMDK: Side = Side {
    // Its fences are its own.
    can_delay: false,
    ..side(
        Role::Peer,
        Build {
            name: "pmdk",
            compiler: Compiler::Clang,
            options: &["-Ibench/locks/pmemobj", "-lpmemobj"],
            sources: &["bench/locks/pmemobj/pool.c"],
        },
    )
};
const HYBRID: Side = side(
    Role::Engine,
    Build {
        name: "hybrid",
        options: &["-Ibench/locks/durum", "-DENGINE=DURUM_ENGINE_HYBRID"],
        ..POOL
    },
);
const SHADOW: Side = side(
    Role::Engine,
    Build {
        name: "shadow",
        options: &["-Ibench/locks/durum", "-DENGINE=DURUM_ENGINE_SHADOW"],
        ..POOL
    },
);
const RESUME: Side = side(Role::Engine, RESUME_C);

/// By the static library.
const SHADOW_STATIC: Side = side(
    Role::Engine,
    Build {
        name: "shadow_static",
        compiler: Compiler::Clang,
        options: &[
            "-Ibench/locks/durum",
            "-I{prefix}/include",
            "-DENGINE=DURUM_ENGINE_SHADOW",
            "{prefix}/lib/libdurum.a",
            "-ldl",
        ],
        ..POOL
    },
);
/// With commits in two halves.
const SHADOW_FLY: Side = side(
    Role::Engine,
    Build {
        name: "shadow_fly",
        options: &[
            "-Ibench/locks/durum",
            "-DENGINE=DURUM_ENGINE_SHADOW",
            "-DFLIES",
        ],
        ..POOL
    },
);

/// For what takes no lock.
const BY_HAND: &[Side] = &[
    PLAIN,
    FLUSH1,
    PMDK,
    HYBRID,
    SHADOW,
    SHADOW_STATIC,
    SHADOW_FLY,
];
const SIDES: &[Side] = &[PLAIN, FLUSH1, PMDK, HYBRID, SHADOW, JUSTDO, RESUME];

const fn row(name: &'static str, one_op: &'static str) -> Row {
    Row { name, one_op }
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "stack",
        rows: &[
            row("stack", "a push or a pop"),
            row("stack_2", "the same, by two threads"),
        ],
        sides: SIDES,
        size: 1,
        least: 600,
        most: 1_000_000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "queue",
        rows: &[
            row("queue", "a put or a take, of a queue with two locks"),
            row("queue_2", "the same, by two threads"),
        ],
        sides: SIDES,
        size: 1,
        least: 600,
        most: 1_000_000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "map",
        rows: &[
            row(
                "map_50",
                "a set or a get in a map of 10,000, half of them sets",
            ),
            row("map_10", "the same, a tenth of them sets"),
            row("map_50_2", "by two threads, half of them sets"),
            row("map_10_2", "by two threads, a tenth of them sets"),
        ],
        sides: SIDES,
        size: 10_000,
        least: 1000,
        most: 1_000_000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "list",
        rows: &[
            row(
                "list",
                "an insert or a removal, hand over hand in 1,000 nodes",
            ),
            row("list_2", "the same, by two threads"),
        ],
        sides: SIDES,
        size: 2000,
        least: 200,
        most: 20_000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "swap",
        rows: &[
            row("swap_1", "a pair of 10,000 integers is swapped"),
            row("swap_8", "8 pairs at once"),
            row("swap_64", "64 pairs at once"),
            row("swap_1024", "1,024 pairs at once"),
        ],
        sides: BY_HAND,
        size: 1,
        least: 200,
        most: 1_000_000,
        is_divisible: true,
        on_disk: true,
    },
    Program {
        name: "stores",
        rows: &[
            row("stores_16", "a section that stores to 16 lines"),
            row(
                "increments_16",
                "one that increments 16 words, each in its line",
            ),
            row("fill_64k", "one that fills 64 KiB"),
            row("fill_1m", "one that fills 1 MiB"),
        ],
        sides: SIDES,
        size: 1,
        least: 20,
        most: 20_000,
        is_divisible: true,
        on_disk: true,
    },
];

const fn bar(row: &'static str, reference: &'static str, most: f64) -> Bar {
    Bar {
        row,
        domain: "dram",
        side: "resume",
        reference,
        most,
    }
}

const BARS: &[Bar] = &[
    bar("stack", "justdo", 1.0 / 2.0),
    bar("queue", "justdo", 1.0 / 2.0),
    bar("map_50", "justdo", 1.0 / 1.8),
    bar("stack", "hybrid", 1.0 / 1.5),
    bar("queue", "hybrid", 1.0 / 1.5),
    bar("map_50", "hybrid", 1.0),
    bar("list", "flush1", 1.15),
    Bar {
        row: "compile",
        domain: "none",
        side: "durumcc",
        reference: "clang",
        most: 1.5,
    },
];
