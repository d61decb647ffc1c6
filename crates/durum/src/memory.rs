//! How much memory this process may use.

use std::fs;
use std::path::Path;

use crate::mapping::PAGE;

/// A quarter of the memory that this process may use: the machine's, or what its control groups allow.
pub(crate) fn quarter() -> u64 {
    // SAFETY: reads a number.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    let machine = u64::try_from(pages).map_or(u64::MAX, |pages| pages.saturating_mul(PAGE as u64));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = group_limit(&groups, |path| fs::read_to_string(path).ok());
    limit.unwrap_or(u64::MAX).min(machine) / 4
}

/// The lowest limit of the memory control groups that `groups` names, in the form of /proc/self/cgroup.
fn group_limit(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (base, file) = match fields.next() {
            Some("") => ("/sys/fs/cgroup", "memory.max"),
            Some(names) if names.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let group = Path::new(fields.next().unwrap_or("/"));
        // A container may see its own group as the topmost one, whatever its path is outside.
        let places = group.ancestors().filter_map(|group| {
            let group = group.strip_prefix("/").ok()?;
            Some(Path::new(base).join(group).join(file))
        });
        // "max" is no number, and no limit.
        let limits = places.filter_map(|place| read(&place)?.trim().parse::<u64>().ok());
        limits.collect()
    });
    limits.min()
}
