//! What a suite is: programs, their sides, and what is asked of them.

use crate::side::Role;
use crate::workload::Row;

/// Programs that are kernels in C. Paths are those in the repository.
pub struct Suite {
    /// In the CSV and in messages.
    pub name: &'static str,
    /// Above the plot.
    pub title: &'static str,
    /// Its heaps may be on a disk, too.
    pub on_disk: bool,
    /// Where `main.c` and the programs are.
    pub dir: &'static str,
    /// For all builds, so that they compute the same.
    pub options: &'static [&'static str],
    /// In the order in which they run.
    pub programs: &'static [Program],
    /// What is asked.
    pub bars: &'static [Bar],
    /// How long the compilers take.
    pub compile: CompileTime,
}

/// What both compilers compile, a file of many kernels.
pub struct CompileTime {
    /// Clang's and durumcc's.
    pub builds: &'static [Build; 2],
    /// What the file includes, with the signs around.
    pub headers: &'static [&'static str],
    /// What it has of each program, `{program}` being its name; those that are there.
    pub sources: &'static [&'static str],
}

/// A kernel.
pub struct Program {
    /// That of its file, too.
    pub name: &'static str,
    /// In the order in which they run.
    pub rows: &'static [Row],
    /// The plain one is the first: what it answers is right.
    pub sides: &'static [Side],
    /// Of its data.
    pub size: usize,
    /// Work of a turn.
    pub least: usize,
    /// Work of a turn of the plain program.
    pub most: usize,
    /// A piece of work takes as long in a turn with less of it.
    pub is_divisible: bool,
    /// It is run on a disk, too, if the suite is.
    pub on_disk: bool,
}

/// The most that data have where nobody looks at times.
const QUICK_SIZE_MAX: usize = 100_000;

impl Program {
    pub(super) fn size(&self, is_quick: bool) -> usize {
        match is_quick {
            true => self.size.min(QUICK_SIZE_MAX),
            false => self.size,
        }
    }
}

/// A form of a program.
pub struct Side {
    /// In the CSV.
    pub name: &'static str,
    /// Whether it is one of durum's.
    pub role: Role,
    /// Its memory is a file; else it is malloc's.
    pub has_heap: bool,
    /// Its fences are durum's, or the benchmark's, which can take longer.
    pub can_delay: bool,
    /// How it is made.
    pub build: Build,
}

/// How a form of a program is made. In options `{prefix}` is where durum is installed, `{write_back}` the instruction
/// by which it writes lines back.
#[derive(Clone, Copy)]
pub struct Build {
    /// No other build of the program has it; sides may share one.
    pub name: &'static str,
    /// That of all sources.
    pub compiler: Compiler,
    /// Behind the sources, so that libraries are among them.
    pub options: &'static [&'static str],
    /// Beside `main.c` and the program.
    pub sources: &'static [&'static str],
}

/// A compiler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// Of the version that durumcc is made of.
    Clang,
    /// The same, for a program that calls libdurum.
    ClangWithDurum,
    /// The installed one.
    Durumcc,
}

/// A side's time as a multiple of another one's, at most.
pub struct Bar {
    /// The row.
    pub row: &'static str,
    /// Where the side's heap is.
    pub domain: &'static str,
    /// Whose time.
    pub side: &'static str,
    /// The other one.
    pub reference: &'static str,
    /// At most.
    pub most: f64,
}
