//! `durum chmod` and `durum chown`: whose a pool is, and who else may use it.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use durum_remote::users;
use durum_service::{Error, OpenOptions, PoolSummary, Rights, Service};

use crate::args::{Chmod, Chown};
use crate::failure::Failure;
use crate::place::Place;

pub(crate) fn chmod(options: &Chmod, out: &mut dyn Write) -> Result<(), Failure> {
    with_pool(
        &options.store,
        options.pool.as_deref(),
        out,
        |store, pool| {
            let mode = mode_of(&options.mode, pool.rights.mode)?;
            Ok(store.set_mode(&pool.name, mode)?)
        },
    )
}

pub(crate) fn chown(options: &Chown, out: &mut dyn Write) -> Result<(), Failure> {
    let (uid, gid) = owner_of(&options.owner)?;
    with_pool(
        &options.store,
        options.pool.as_deref(),
        out,
        |store, pool| Ok(store.set_owner(&pool.name, uid, gid)?),
    )
}

/// Opens the store, changes something of the pool, and tells what became of it.
fn with_pool(
    store: &Path,
    pool: Option<&str>,
    out: &mut dyn Write,
    change: impl FnOnce(&Arc<dyn Service>, &PoolSummary) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let place = Place::of(store);
    let name = place.named_pool(pool)?;
    let service = place.open(OpenOptions::default())?;
    let changed = look(&service, name).and_then(|found| change(&service, &found));
    let seen = changed.and_then(|()| look(&service, name));
    let closed = service.close();
    let rights = seen?.rights;
    closed?;
    writeln!(
        out,
        "pool \"{name}\": {} {}:{}",
        shown(rights.mode),
        users::user(rights.uid),
        users::group(rights.gid)
    )?;
    Ok(())
}

fn look(service: &Arc<dyn Service>, name: &str) -> Result<PoolSummary, Failure> {
    let mut pools = service.pools()?.into_iter();
    let found = pools.find(|pool| pool.name == name);
    Ok(found.ok_or_else(|| Error::PoolMissing {
        store: service.info().path,
        name: name.to_owned(),
    })?)
}

/// A mode as `ls -l` shows that of a file.
pub(crate) fn shown(mode: u16) -> String {
    let letter = |bit: u16| match (mode >> bit & 1, bit % 3) {
        (0, _) => '-',
        (_, 2) => 'r',
        (_, 1) => 'w',
        _ => 'x',
    };
    (0..9).rev().map(letter).collect()
}

/// A mode as `chmod` takes it: octal, or changes of the one that is (`g+r,o=`).
fn mode_of(text: &str, old: u16) -> Result<u16, Failure> {
    let refused = || {
        Failure::Refused(format!(
            "{text:?} is no mode; write it like 0640, or like u=rw,g+r,o="
        ))
    };
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return u16::from_str_radix(text, 8).map_err(|_| refused());
    }
    let mut mode = old;
    for part in text.split(',') {
        let at = part.find(['+', '-', '=']).ok_or_else(refused)?;
        let (who, change) = part.split_at(at);
        let mut classes = 0;
        for class in who.chars() {
            classes |= match class {
                'u' => 0o700,
                'g' => 0o070,
                'o' => 0o007,
                'a' => 0o777,
                _ => return Err(refused()),
            };
        }
        if who.is_empty() {
            classes = 0o777;
        }
        let mut bits = 0;
        for bit in change.chars().skip(1) {
            bits |= match bit {
                'r' => 0o444,
                'w' => 0o222,
                _ => return Err(refused()),
            };
        }
        mode = match change.chars().next() {
            Some('+') => mode | bits & classes,
            Some('-') => mode & !(bits & classes),
            _ => mode & !classes | bits & classes,
        };
    }
    Ok(mode)
}

/// `USER`, `USER:GROUP` or `:GROUP`, by name or number.
fn owner_of(text: &str) -> Result<(Option<u32>, Option<u32>), Failure> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    if user.is_empty() && group.is_empty() {
        let form = "name a user, a group or both: USER, :GROUP or USER:GROUP";
        return Err(Failure::Refused(form.into()));
    }
    let known = |name: &str, found: Option<u32>, what: &str| match (name, found) {
        ("", _) => Ok(None),
        (_, Some(number)) => Ok(Some(number)),
        (name, None) => Err(Failure::Refused(format!(
            "there is no {what} {name:?}; name one that there is, or its number"
        ))),
    };
    Ok((
        known(user, users::uid_of(user), "user")?,
        known(group, users::gid_of(group), "group")?,
    ))
}

/// Owner, group and mode, for a list.
pub(crate) fn columns(rights: &Rights) -> [String; 3] {
    [
        shown(rights.mode),
        users::user(rights.uid),
        users::group(rights.gid),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_chmod_reads_them() {
        for (text, old, new) in [
            ("0640", 0, 0o640),
            ("600", 0o666, 0o600),
            ("g+r", 0o600, 0o640),
            ("go=", 0o666, 0o600),
            ("u=rw,g=r,o=", 0o066, 0o640),
            ("a-w", 0o666, 0o444),
            ("+r", 0o200, 0o644),
            ("o+rw,g-w", 0o660, 0o646),
        ] {
            assert_eq!(mode_of(text, old).unwrap(), new, "{text}");
        }
        for text in ["", "8", "64x", "g", "g+x", "z+r", "u+r,", "0o640"] {
            mode_of(text, 0).unwrap_err();
        }
        assert_eq!(shown(0o640), "rw-r-----");
    }

    #[test]
    fn owners_are_read_as_chown_reads_them() {
        let owner = |text| owner_of(text).ok();
        assert_eq!(owner("root"), Some((Some(0), None)));
        assert_eq!(owner(":root"), Some((None, Some(0))));
        assert_eq!(owner("61001:62001"), Some((Some(61_001), Some(62_001))));
        for text in ["", ":", "nobody of this name", "root:no such group"] {
            assert_eq!(owner(text), None);
        }
    }
}
