# A clone needs `make demo` and `make test`. Each target installs the Debian packages that it misses
# (as root or with sudo; else it names them and exits). The checks are scripts in ci/; docs/how-to/testing.md
# tells what each runs and how long it takes.

# Arguments of `make demo` and `make bench`, e.g. make demo ARGS="--store /mnt/pmem/store book.txt"
ARGS ?=
# Which benchmark suites to run (all of them, if empty).
SUITE ?=
# Power cuts of `make test-dax` and `make test-disk`.
ROUNDS ?= 5
PREFIX ?= /usr/local
DESTDIR ?=
export SUITE ROUNDS PREFIX DESTDIR

.DEFAULT_GOAL := help
.PHONY: help demo test bench lint test-long test-dax test-disk install uninstall durumcc clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

demo: ## word count over real text, killed again and again, compared with a plain count; a program in NVL-C (4 min with the build)
	@ci/demo.sh $(ARGS)

test: ## every test that needs stable Rust only: Rust, examples in the docs, C and C++ (15 minutes on 2 processors with the build, 10 on 4)
	@ci/test.sh

bench: ## side by side with other libraries; SUITE=core, twin, threads, media, latency, typed, programs, daemon, disk, nvlc, locks, sections or kv chooses one suite (table, plot, CSV)
	@ci/bench.sh $(ARGS)

lint: ## formatting, clippy, documentation, house rules
	@ci/lint.sh

test-long: ## crash campaigns in full length, fuzzers, Miri, AArch64 (hours)
	@ci/test-long.sh

test-dax: ## power cuts of a virtual machine with ext4-DAX; ROUNDS=N chooses how many
	@ci/power.sh dax

test-disk: ## power cuts of a virtual machine with ext4 on a disk that loses what is in its write cache
	@ci/power.sh disk

install: ## libraries, headers, pkg-config and CMake files, commands, durumd with its systemd units, to PREFIX (and DESTDIR)
	@ci/install.sh

uninstall: ## remove what `make install` has installed to the same PREFIX (and DESTDIR); stores stay
	@ci/uninstall.sh

durumcc: ## the compiler of NVL-C with libdurum, its headers and commands, to PREFIX
	@ci/durumcc.sh "$(PREFIX)"

clean: ## remove what the targets above built
	@cargo clean
