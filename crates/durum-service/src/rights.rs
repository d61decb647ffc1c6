//! Who a client is, and what it may do with pools.
//!
//! The service decides, by what the system says of a client's process, and by what the registry says of a pool. Nothing
//! that a client writes is asked. Who opens a directory by its path has what the file system gives it: all.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use durum_format::registry::Rights;

use crate::error::{Error, Result};

/// What a client wants of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read it.
    Read,
    /// To read and write it.
    Write,
}

/// The user of a client in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Caller {
    /// A process of this user and group, and of these groups besides.
    pub fn new(uid: u32, gid: u32, groups: Vec<u32>) -> Caller {
        Caller { uid, gid, groups }
    }

    /// Its user.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// What a pool gets that it makes.
    pub(crate) fn own(&self) -> Rights {
        Rights {
            uid: self.uid,
            gid: self.gid,
            mode: Rights::PRIVATE,
        }
    }

    /// Whether it may do anything: root, and the service's own user, who could open the files themselves.
    pub fn may_all(&self) -> bool {
        is_privileged(self.uid)
    }

    /// Whether it may use a pool so. As with files, the first class that it belongs to decides: owner, group, others.
    pub(crate) fn may(&self, rights: &Rights, wanted: Access) -> bool {
        let bits = match wanted {
            Access::Read => 0o4,
            // Whoever maps a pool for writing reads it, too.
            Access::Write => 0o6,
        };
        let shift = match () {
            () if self.uid == rights.uid => 6,
            () if self.is_in(rights.gid) => 3,
            () => 0,
        };
        self.may_all() || rights.mode >> shift & bits == bits
    }

    /// Whether it may remove a pool, or change its mode.
    pub(crate) fn owns(&self, rights: &Rights) -> bool {
        self.may_all() || self.uid == rights.uid
    }

    /// Whether it may change whose a pool is: an owner may choose among its own groups, and not give it away.
    pub(crate) fn may_give(&self, rights: &Rights, to: &Rights) -> bool {
        let is_own = self.uid == rights.uid && self.uid == to.uid;
        self.may_all() || is_own && (to.gid == rights.gid || self.is_in(to.gid))
    }

    fn is_in(&self, group: u32) -> bool {
        self.gid == group || self.groups.contains(&group)
    }
}

/// Whether this is root or the user of this process.
pub(crate) fn is_privileged(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// What a pool gets that this process makes for itself.
pub(crate) fn of_this_process() -> Rights {
    Rights {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        mode: Rights::PRIVATE,
    }
}

/// Those of pools of which the registry says nothing: they are private to the owner of the store's directory.
pub(crate) fn of_directory(store: &Path) -> Result<Rights> {
    let found = std::fs::metadata(store)
        .map_err(|error| Error::io("asking whose the store is", store, error))?;
    Ok(Rights {
        uid: found.uid(),
        gid: found.gid(),
        mode: Rights::PRIVATE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHTS: Rights = Rights {
        uid: 1001,
        gid: 2001,
        mode: 0o640,
    };

    fn caller(uid: u32, gid: u32, groups: &[u32]) -> Caller {
        Caller::new(uid, gid, groups.to_vec())
    }

    #[test]
    fn the_first_class_decides() {
        let who = [
            caller(1001, 1, &[]),
            caller(1002, 2001, &[]),
            caller(1002, 1, &[7, 2001]),
            caller(1002, 1, &[7]),
        ];
        let may = |mode, wanted| {
            let rights = Rights { mode, ..RIGHTS };
            who.each_ref().map(|caller| caller.may(&rights, wanted))
        };
        assert_eq!(may(0o640, Access::Read), [true, true, true, false]);
        assert_eq!(may(0o640, Access::Write), [true, false, false, false]);
        assert_eq!(may(0o606, Access::Write), [true, false, false, true]);
        assert_eq!(may(0o066, Access::Read), [false, true, true, true]);
        // Nobody writes what it may not read.
        assert_eq!(may(0o222, Access::Write), [false; 4]);
        assert_eq!(may(0o000, Access::Read), [false; 4]);
        assert!(caller(0, 0, &[]).may(&Rights { mode: 0, ..RIGHTS }, Access::Write));
    }

    #[test]
    fn an_owner_chooses_among_its_groups_and_gives_nothing_away() {
        let owner = caller(1001, 1, &[7]);
        let to = |uid, gid| Rights { uid, gid, ..RIGHTS };
        for (rights, may) in [
            (to(1001, 2001), true),
            (to(1001, 7), true),
            (to(1001, 1), true),
            (to(1001, 8), false),
            (to(1002, 7), false),
        ] {
            assert_eq!(owner.may_give(&RIGHTS, &rights), may, "{rights:?}");
        }
        assert!(!caller(1002, 2001, &[]).may_give(&RIGHTS, &to(1002, 2001)));
        assert!(!caller(1002, 2001, &[]).owns(&RIGHTS));
        assert!(caller(0, 0, &[]).may_give(&RIGHTS, &to(5, 6)));
    }
}
