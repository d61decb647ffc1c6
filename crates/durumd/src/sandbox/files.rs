//! Which files the service reaches: Landlock, by the crate of its authors.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags, path_beneath_rules,
};

/// The newest rights that the rules below are written for; of these a kernel takes what it knows.
const KNOWN: ABI = ABI::V6;

/// Nothing but the store can be read or written, nothing executed, no TCP port opened or reached.
pub(super) fn narrow(store: &Path, own: &[PathBuf]) -> Result<(), String> {
    restrict(store, own).map_err(|error| error.to_string())
}

fn restrict(store: &Path, own: &[PathBuf]) -> Result<(), Box<dyn std::error::Error>> {
    let contents = make_bitflags!(AccessFs::{
        ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | RemoveDir | Refer
    });
    let sockets = make_bitflags!(AccessFs::{MakeSock | RemoveFile});
    let looking = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let mut rules = Ruleset::default()
        // Damaged files move to another directory of the store. A kernel that cannot allow that (before 5.19) forbids
        // it.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::Signal)?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new(store)?, contents))?
        // Which processes live, and which memory is persistent.
        .add_rules(path_beneath_rules(
            ["/proc", "/sys/bus/nd", "/sys/devices"],
            looking,
        ))?;
    for socket in own {
        let directory = match socket.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let rule = PathBeneath::new(PathFd::new(directory)?, sockets);
        rules = rules.add_rule(rule)?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err("this kernel has none".into()),
        _ => Ok(()),
    }
}
