//! The programs are compiled, each in the forms of its sides.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use durum_persist::line::{self, Instruction};

use super::plan::Plan;
use super::suite::{Build, Compiler, Program, Suite};
use crate::error::{Error, Result};

/// The executables.
pub(super) struct Compiled {
    dir: PathBuf,
}

impl Compiled {
    pub(super) fn all(suite: &Suite, plan: &Plan, programs: &[&Program]) -> Result<Compiled> {
        let compiled = Compiled {
            dir: plan.work_dir.join("programs"),
        };
        std::fs::create_dir_all(&compiled.dir).map_err(Error::file(&compiled.dir))?;
        let mut jobs = Vec::new();
        for program in programs {
            let mut known = BTreeSet::new();
            let builds = program.sides.iter().map(|side| side.build);
            let builds = builds.filter(|build| known.insert(build.name));
            jobs.extend(builds.map(|build| (*program, build)));
        }
        let jobs = jobs.into_iter();
        let jobs = Mutex::new(jobs);
        let work = || -> Result<()> {
            loop {
                let next = jobs
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner())
                    .next();
                let Some((program, build)) = next else {
                    return Ok(());
                };
                let mut sources: Vec<String> = ["main", program.name]
                    .map(|name| format!("{}/{name}.c", suite.dir))
                    .into();
                sources.extend(build.sources.iter().map(|&source| source.to_owned()));
                let mut command = command(suite, plan, &build, &sources);
                run(command
                    .arg("-o")
                    .arg(compiled.executable(program, &build))
                    .arg("-lm"))?;
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

    pub(super) fn executable(&self, program: &Program, build: &Build) -> PathBuf {
        self.dir.join(format!("{}.{}", program.name, build.name))
    }
}

/// The compiler with sources and options of a build.
pub(super) fn command(
    suite: &Suite,
    plan: &Plan,
    build: &Build,
    sources: &[impl AsRef<OsStr>],
) -> Command {
    let mut command = match build.compiler {
        Compiler::Durumcc => Command::new(plan.prefix.join("bin/durumcc")),
        Compiler::Clang | Compiler::ClangWithDurum => Command::new("clang-19"),
    };
    command.current_dir(&plan.repository);
    command.args(suite.options);
    command.arg("-I").arg(suite.dir);
    command.args(sources);
    let prefix = plan.prefix.display().to_string();
    let filled = |option: &&str| {
        option
            .replace("{prefix}", &prefix)
            .replace("{write_back}", instruction())
    };
    command.args(build.options.iter().map(filled));
    if build.compiler == Compiler::ClangWithDurum {
        command.args([
            format!("-I{prefix}/include"),
            format!("-L{prefix}/lib"),
            "-ldurum".to_owned(),
        ]);
    }
    if build.compiler != Compiler::Clang {
        command.arg(format!("-Wl,-rpath,{prefix}/lib"));
    }
    command
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
