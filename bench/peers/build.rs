//! Compiles the C sources with the same optimisation level as the Rust sides and links the libraries that they use.

fn main() {
    let sources = [
        "cells.c",
        "swap.c",
        "euler.c",
        "list.c",
        "tree.c",
        "map.c",
        "numbers.c",
        "sorted.c",
        "redblack.c",
        "fixed.c",
        "pool.c",
        "sensors.c",
        "programs/stack.c",
        "programs/bst.c",
        "programs/hash.c",
        "programs/bplus.c",
        "programs/store.c",
        "programs/words.c",
        "kv.c",
        "leveldb.c",
        "lmdb.c",
    ];
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .opt_level(3)
        .debug(true)
        .force_frame_pointer(false)
        .warnings(true)
        .extra_warnings(true)
        // Position-independent for an executable only: `pmemobj_direct` reads a thread-local cache, and a
        // shared-library model would turn that read into a function call.
        .pic(false)
        .flag("-fPIE")
        // TX_BEGIN is a setjmp: gcc warns of every local beside it. What is read after an abort is written after it.
        .flag_if_supported("-Wno-clobbered");
    for source in sources {
        println!("cargo::rerun-if-changed=c/{source}");
        build.file(format!("c/{source}"));
    }
    for header in [
        "peer.h",
        "pool.h",
        "numbers.h",
        "sensors.h",
        "kv.h",
        "programs/programs.h",
        "programs/hashes.h",
    ] {
        println!("cargo::rerun-if-changed=c/{header}");
    }
    build.compile("durum_bench_peer");
    for library in ["pmemobj", "leveldb", "lmdb"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
}
