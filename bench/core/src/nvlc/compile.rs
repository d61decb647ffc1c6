//! The programs are compiled, each in the forms of its sides.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use durum_persist::line::{self, Instruction};

use super::plan::Plan;
use super::table::{Compiler, Program, Side};
use crate::error::{Error, Result};

/// For all, so that they compute the same.
const OPTIONS: [&str; 6] = [
    "-O2",
    "-std=gnu11",
    "-ffp-contract=off",
    "-Wall",
    "-Werror",
    "-Wno-unknown-pragmas",
];

/// The executables.
pub(super) struct Compiled {
    dir: PathBuf,
}

impl Compiled {
    pub(super) fn all(plan: &Plan, programs: &[&Program]) -> Result<Compiled> {
        let compiled = Compiled {
            dir: plan.work_dir.join("programs"),
        };
        std::fs::create_dir_all(&compiled.dir).map_err(Error::file(&compiled.dir))?;
        let jobs = programs.iter().flat_map(|program| {
            let sides = program.sides.iter();
            sides.map(move |side| (*program, side))
        });
        // The plain program is one on two sides.
        let jobs = jobs.filter(|(_, side)| side.name != "exm");
        let jobs = Mutex::new(jobs);
        let work = || -> Result<()> {
            loop {
                let next = jobs
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner())
                    .next();
                let Some((program, side)) = next else {
                    return Ok(());
                };
                let mut command = command(plan, side.compiler);
                command.args(["main", program.name].map(|name| source(plan, name)));
                if !matches!(side.compiler, Compiler::Durumcc(_)) {
                    command.arg(source(plan, "plain/memory"));
                }
                command.arg("-o").arg(compiled.executable(program, side));
                run(command.arg("-lm"))?;
            }
        };
        let workers = thread::available_parallelism().map_or(1, |count| count.get());
        thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let join = |worker: thread::ScopedJoinHandle<'_, Result<()>>| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            workers.into_iter().map(join).collect::<Result<Vec<()>>>()
        })?;
        Ok(compiled)
    }

    pub(super) fn executable(&self, program: &Program, side: &Side) -> PathBuf {
        let form = match side.name {
            "exm" => "plain",
            name => name,
        };
        self.dir.join(format!("{}.{form}", program.name))
    }
}

pub(super) fn source(plan: &Plan, name: &str) -> PathBuf {
    plan.repository.join("bench/nvlc").join(format!("{name}.c"))
}

/// The compiler with the options of a side; what to compile is added.
pub(super) fn command(plan: &Plan, compiler: Compiler) -> Command {
    let nvlc = plan.repository.join("bench/nvlc");
    let mut command = match compiler {
        Compiler::Durumcc(_) => Command::new(plan.prefix.join("bin/durumcc")),
        _ => Command::new("clang-19"),
    };
    command.args(OPTIONS);
    match compiler {
        Compiler::Durumcc(options) => {
            command.args(options);
            command.arg(rpath(&plan.prefix));
        }
        Compiler::Clang => {
            command.arg("-I").arg(nvlc.join("plain"));
        }
        Compiler::ClangFlush1 => {
            command.arg("-I").arg(nvlc.join("plain"));
            command.arg(format!("-DFLUSH1=\"{}\"", instruction()));
        }
    }
    command.arg("-I").arg(&nvlc);
    command.arg("-I").arg(plan.repository.join("examples/nvl"));
    command
}

fn rpath(prefix: &Path) -> String {
    format!("-Wl,-rpath,{}", prefix.join("lib").display())
}

/// The instruction by which durum writes lines back.
fn instruction() -> &'static str {
    match line::instruction() {
        Instruction::Clwb => "clwb",
        Instruction::ClflushOpt => "clflushopt",
        _ => "clflush",
    }
}

/// Runs a compiler.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let program = PathBuf::from(command.get_program());
    let output = command.output().map_err(Error::file(&program))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Unfair(format!(
            "{command:?} failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}
