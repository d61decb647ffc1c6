//! What the numbers come from: without it nobody can compare them.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// Facts about the run that only the caller knows.
#[derive(Debug)]
pub struct Run<'r> {
    /// Where the stores were.
    pub dirs: Vec<&'r Path>,
    /// The write-back instruction of all sides.
    pub instruction: String,
    /// Name and version of the peers.
    pub peers: Vec<String>,
    /// Rounds.
    pub rounds: usize,
    /// `full` or `quick`.
    pub scale: &'static str,
    /// Which clock.
    pub clock: &'static str,
    /// The processor that the thread was kept on, in the suites in memory.
    pub pinned: Option<usize>,
    /// CPU time as a share of elapsed time while measuring, where that says anything.
    pub processor_share: Option<f64>,
    /// Seconds that the run took.
    pub seconds: f64,
}

/// What a run was: names and facts.
#[derive(Clone, Debug)]
pub struct Description(Vec<(&'static str, String)>);

impl Description {
    /// Of these facts.
    pub fn of(facts: impl IntoIterator<Item = (&'static str, String)>) -> Description {
        Description(facts.into_iter().collect())
    }

    /// In the order in which they are told.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, fact)| (*name, fact.as_str()))
    }

    /// What stands below each plot: machine, commit, and how busy the machine was.
    pub fn caption(&self) -> Vec<String> {
        let fact = |name: &str| {
            let mut facts = self.facts();
            facts
                .find(|(other, _)| *other == name)
                .map_or("-", |(_, fact)| fact)
        };
        // What the share means, the description says; of the load, how many processes there are.
        let share = fact(SHARE).split(' ').next().unwrap_or("-");
        let load: Vec<&str> = fact("load average").split(' ').take(3).collect();
        vec![
            format!("{}, {}; {}", fact("cpu"), fact("kernel"), fact("date")),
            format!(
                "commit {}; rounds: {}, {}, {} clock; processor share {share}, load average {}",
                fact("commit"),
                fact("rounds"),
                fact("scale"),
                fact("clock"),
                load.join(" "),
            ),
        ]
    }
}

/// One fact a line.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts()
            .try_for_each(|(name, fact)| writeln!(f, "{name}: {fact}"))
    }
}

const SHARE: &str = "processor share";

/// Asks the system.
pub fn describe(run: &Run<'_>) -> Description {
    let cpu = cpu_model();
    // SAFETY: reads a number. (`available_parallelism` would tell how many this pinned thread may use.)
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    Description::of([
        ("date", output("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])),
        ("commit", commit()),
        ("command", std::env::args().collect::<Vec<_>>().join(" ")),
        ("cpu", format!("{cpu}, {processors} processors")),
        ("kernel", output("uname", &["-srm"])),
        ("distribution", distribution()),
        ("file system", described(&run.dirs, file_system)),
        ("write-back", run.instruction.clone()),
        ("peer", described(&run.peers, String::clone)),
        ("rounds", run.rounds.to_string()),
        ("scale", run.scale.to_owned()),
        ("clock", run.clock.to_owned()),
        (
            "pinned to processor",
            run.pinned.map_or("no".to_owned(), |cpu| cpu.to_string()),
        ),
        (
            SHARE,
            run.processor_share.map_or("-".to_owned(), |share| {
                format!("{share:.3} (below 0.95: the machine was busy, trust ratios only)")
            }),
        ),
        (
            "load average",
            fs::read_to_string("/proc/loadavg")
                .unwrap_or_default()
                .trim()
                .to_owned(),
        ),
        ("seconds", format!("{:.0}", run.seconds)),
    ])
}

fn described<T>(things: &[T], one: impl Fn(&T) -> String) -> String {
    if things.is_empty() {
        return "none".to_owned();
    }
    things.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The kind, how it is mounted, and whether its device keeps writes in a cache that a sync has to flush.
fn file_system(dir: &&Path) -> String {
    let dir_text = dir.to_string_lossy();
    let columns = "FSTYPE,SOURCE,OPTIONS";
    let mount = output("findmnt", &["-n", "-o", columns, "-T", &dir_text]);
    let mount = mount.split_whitespace().collect::<Vec<_>>().join(" ");
    let cache = write_cache(dir).map_or(String::new(), |cache| format!(", {cache} cache"));
    format!("{mount}{cache}, at {}", dir.display())
}

/// `write back` or `write through`: the write cache of the device below the directory, where it has one.
fn write_cache(dir: &Path) -> Option<String> {
    let device = fs::metadata(dir).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let block = format!("/sys/dev/block/{major}:{minor}");
    // A partition has no queue of its own.
    let read = |path: &str| fs::read_to_string(format!("{block}/{path}")).ok();
    let cache = read("queue/write_cache").or_else(|| read("../queue/write_cache"))?;
    Some(cache.trim().to_owned())
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
