//! What the numbers come from: without it nobody can compare them.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Facts about the run that only the caller knows.
#[derive(Debug)]
pub struct Run<'r> {
    /// Where the stores were.
    pub dir: &'r Path,
    /// The write-back instruction of all sides.
    pub instruction: String,
    /// Name and version of the peer.
    pub peer: Option<String>,
    /// Rounds.
    pub rounds: usize,
    /// `full` or `quick`.
    pub scale: &'static str,
    /// Which clock.
    pub clock: &'static str,
    /// The processor that the thread was kept on.
    pub pinned: Option<usize>,
    /// CPU time as a share of elapsed time while measuring.
    pub processor_share: f64,
    /// Seconds that the run took.
    pub seconds: f64,
}

/// The description, one fact a line.
pub fn describe(run: &Run<'_>) -> String {
    let cpu = cpu_model();
    // SAFETY: reads a number. (`available_parallelism` would tell how many this pinned thread may use.)
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let facts = [
        ("date", output("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])),
        ("commit", commit()),
        ("command", std::env::args().collect::<Vec<_>>().join(" ")),
        ("cpu", format!("{cpu}, {processors} processors")),
        ("kernel", output("uname", &["-srm"])),
        ("distribution", distribution()),
        (
            "file system",
            format!(
                "{} at {}",
                output("stat", &["-f", "-c", "%T", &run.dir.to_string_lossy()]),
                run.dir.display()
            ),
        ),
        ("write-back", run.instruction.clone()),
        (
            "peer",
            run.peer.clone().unwrap_or_else(|| "none".to_owned()),
        ),
        ("rounds", run.rounds.to_string()),
        ("scale", run.scale.to_owned()),
        ("clock", run.clock.to_owned()),
        (
            "pinned to processor",
            run.pinned.map_or("no".to_owned(), |cpu| cpu.to_string()),
        ),
        (
            "processor share",
            format!(
                "{:.3} (below 0.95: the machine was busy, trust ratios only)",
                run.processor_share
            ),
        ),
        (
            "load average",
            fs::read_to_string("/proc/loadavg")
                .unwrap_or_default()
                .trim()
                .to_owned(),
        ),
        ("seconds", format!("{:.0}", run.seconds)),
    ];
    facts
        .iter()
        .map(|(name, fact)| format!("{name}: {fact}\n"))
        .collect()
}

fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let (Some(model), Some(number)) = (field("model name"), field("model\t")) else {
        return output("uname", &["-m"]);
    };
    format!(
        "{model} (family {}, model {number})",
        field("cpu family").unwrap_or_default()
    )
}

fn distribution() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("unknown").trim_matches('"').to_owned()
}

fn commit() -> String {
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]);
    let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
    if changed.is_empty() || changed == UNKNOWN {
        commit
    } else {
        format!("{commit}, with uncommitted changes")
    }
}

const UNKNOWN: &str = "unknown";

fn output(program: &str, args: &[&str]) -> String {
    match Command::new(program).args(args).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => UNKNOWN.to_owned(),
    }
}
