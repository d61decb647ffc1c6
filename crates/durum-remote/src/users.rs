//! Users and groups by their names, as the system knows them.

use std::ffi::CString;

use durum_service::Caller;
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};

/// The number of a user that is named, or given by its number.
pub fn uid_of(name: &str) -> Option<u32> {
    let found = User::from_name(name).ok().flatten();
    found.map_or_else(|| name.parse().ok(), |user| Some(user.uid.as_raw()))
}

/// The number of a group that is named, or given by its number.
pub fn gid_of(name: &str) -> Option<u32> {
    let found = Group::from_name(name).ok().flatten();
    found.map_or_else(|| name.parse().ok(), |group| Some(group.gid.as_raw()))
}

/// The name of a user; its number where it has none.
pub fn user(uid: u32) -> String {
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    found.map_or_else(|| uid.to_string(), |user| user.name)
}

/// The name of a group; its number where it has none.
pub fn group(gid: u32) -> String {
    let found = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
    found.map_or_else(|| gid.to_string(), |group| group.name)
}

/// A user with the groups that the system knows it in; alone where it knows no such user.
pub fn caller(uid: u32) -> Caller {
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let Some(user) = found else {
        // No group has this number.
        return Caller::new(uid, u32::MAX, Vec::new());
    };
    let name = CString::new(user.name).unwrap_or_default();
    let groups = getgrouplist(&name, user.gid).unwrap_or_default();
    let groups = groups.into_iter().map(Gid::as_raw);
    Caller::new(uid, user.gid.as_raw(), groups.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_found_by_each_other() {
        assert_eq!((uid_of("root"), gid_of("root")), (Some(0), Some(0)));
        assert_eq!((user(0), group(0)), ("root".into(), "root".into()));
        assert_eq!(
            (uid_of("61001"), gid_of("62001")),
            (Some(61_001), Some(62_001))
        );
        assert_eq!(
            (user(61_001), group(62_001)),
            ("61001".into(), "62001".into())
        );
        assert_eq!(uid_of("nobody of this name"), None);
        assert_eq!(gid_of("-1"), None);
    }
}
