//! Parts of the messages of errors.

use std::path::{Path, PathBuf};

use durum_format::section::Code;

use crate::model::{InterruptedClient, quoted};

/// A path, also an empty one.
pub(crate) fn shown(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => "\"\"".into(),
        false => path.display().to_string(),
    }
}

/// The holder of a lock.
pub(crate) fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) if pid == std::process::id() => format!("this process (pid {pid})"),
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}

/// Who has a store open, and what to do about it.
pub(crate) fn in_use(pid: Option<u32>) -> String {
    match pid.filter(|pid| is_service(*pid)) {
        Some(pid) => format!(
            "served by durumd (process {pid}); name the store by that service (durum:, or durum+unix:SOCKET), or end the service \
             first"
        ),
        None => format!("in use by {}; close it there first", holder(pid)),
    }
}

/// Whether the process calls itself as the service does: good enough for what to advise.
fn is_service(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim_end() == "durumd")
}

/// No store is there.
pub(crate) fn cure_of_missing(path: &Path, can_be_made: bool) -> String {
    match can_be_made {
        true => format!("make one with `durum init {}`", path.display()),
        false => {
            "name the directory of a store; a new one needs a path where nothing is yet".into()
        }
    }
}

/// What lies there and is no open store stays: a mapping of the program's own, or the addresses of a store of another
/// size, which are reserved until the process ends.
pub(crate) fn cure_of_conflict(store: &Path, other: Option<&Path>) -> String {
    let store = store.display();
    match other {
        Some(_) => format!(
            "close that one first, or give one of them new addresses: `durum clone {store} NEW`"
        ),
        None => format!(
            "give it addresses that nothing uses: `durum clone {store} NEW --base ADDRESS` (those of a store of another \
             size stay in use until the process ends)"
        ),
    }
}

/// Who uses an address range.
pub(crate) fn user_of_range(store: Option<&Path>) -> String {
    match store {
        Some(path) => format!("the store {}", path.display()),
        None => "something else".into(),
    }
}

/// Some files, and how many more there are.
pub(crate) fn some_of(files: &[PathBuf]) -> String {
    const SHOWN_MAX: usize = 4;
    let shown = files.iter().take(SHOWN_MAX);
    let shown: Vec<String> = shown.map(|file| file.display().to_string()).collect();
    match files.len().saturating_sub(SHOWN_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Reasons, of which not all are told where there are many.
pub(crate) fn all_reasons(reasons: &[String]) -> String {
    const SHOWN_MAX: usize = 16;
    let shown: Vec<&str> = reasons.iter().take(SHOWN_MAX).map(String::as_str).collect();
    match reasons.len().saturating_sub(SHOWN_MAX) {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

/// What a program that is gone was in the middle of.
pub(crate) fn interruption(
    sections: u64,
    first: Option<Code>,
    place: Option<&str>,
    damage: Option<&str>,
) -> String {
    let first = match (place, first) {
        (Some(place), _) => format!(" (the first at {place})"),
        (None, Some(code)) => format!(" (the first at {code})"),
        (None, None) => String::new(),
    };
    let sections = match sections {
        1 => format!("a program ended in a section{first}"),
        sections => format!("a program ended in {sections} sections{first}"),
    };
    match damage {
        Some(damage) => format!("{sections}, and its records are damaged: {damage}"),
        None => sections,
    }
}

impl InterruptedClient {
    /// What it was in the middle of, and why its code did not complete that, as a clause.
    pub fn reason(&self) -> String {
        let (place, damage) = (self.place(), self.damage.as_deref());
        let interruption = interruption(self.sections, self.first, place.as_deref(), damage);
        interruption + &with_attempt(self.not_completed.as_deref())
    }

    /// Where the first of its sections goes on, and in which program, as that has deposited.
    pub(crate) fn place(&self) -> Option<String> {
        let (place, program) = (self.places.first()?, self.program.as_ref()?);
        Some(format!("{place}; it was {program}"))
    }
}

/// What became of the attempt to complete what was interrupted.
pub(crate) fn with_attempt(not_completed: Option<&str>) -> String {
    not_completed.map_or(String::new(), |why| format!("; {why}"))
}

/// Pools of which the same is to be said.
pub(crate) fn with_others(others: &[String]) -> String {
    match others.is_empty() {
        true => String::new(),
        false => format!("; so are {}", quoted(others)),
    }
}

/// Where a structure begins, unless that is the start of the file.
pub(crate) fn begins_at(base: u64) -> String {
    match base {
        0 => String::new(),
        base => format!(" (the structure begins at byte {base} of the file)"),
    }
}

/// An offset, where there is one.
pub(crate) fn at(offset: Option<u64>) -> String {
    offset.map_or_else(String::new, |offset| format!(" at offset {offset}"))
}

/// Which pool a reason is about, in front of it.
pub(crate) fn of_pool(pool: Option<&str>) -> String {
    pool.map(|pool| format!("pool \"{pool}\": "))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_store_that_a_service_has_is_to_be_named_by_it() {
        let directory = tempfile::tempdir().unwrap();
        for (name, said) in [
            ("durumd", "served by durumd (process "),
            ("durumd2", "in use by process "),
        ] {
            // What counts is what it is called.
            let program = directory.path().join(name);
            std::fs::copy("/bin/sleep", &program).unwrap();
            let mut process = Command::new(&program).arg("60").spawn().unwrap();
            // It gets its name a moment after it has begun.
            let comm = format!("/proc/{}/comm", process.id());
            while std::fs::read_to_string(&comm).unwrap().trim_end() != name {
                std::thread::yield_now();
            }
            let told = in_use(Some(process.id()));
            process.kill().unwrap();
            process.wait().unwrap();
            assert!(told.starts_with(said), "{told}");
            let is_named = told.contains("name the store by that service");
            assert_eq!(is_named, name == "durumd", "{told}");
        }
        assert!(in_use(None).starts_with("in use by another process"));
        let own = in_use(Some(std::process::id()));
        assert!(own.starts_with("in use by this process"), "{own}");
    }
}
