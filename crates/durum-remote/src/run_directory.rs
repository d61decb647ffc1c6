//! The directory of a user's own sockets: nobody else may be in it. A program that observes itself has its socket
//! there, and whoever watches looks there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a session of a user has.
const VARIABLE: &str = "XDG_RUNTIME_DIR";

/// Makes it, if it is not there.
///
/// # Errors
/// `PermissionDenied` where what is there is not this user's alone; others as the system says.
pub fn make() -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let [session, of_user, last] = places(user);
    for place in [session, of_user].into_iter().flatten() {
        // Somebody else's where `su` has left the variable as it was.
        let parent = place.parent().unwrap_or(&place);
        if is_of(parent, user, 0o022).is_ok() {
            return made(place, user);
        }
    }
    match last {
        Some(place) => made(place, user),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Those that are there of this user, and nobody else's.
pub fn find(user: u32) -> Vec<PathBuf> {
    let places = places(user).into_iter().flatten();
    let mut found: Vec<PathBuf> = places
        .filter(|place| is_of(place, user, 0o077).is_ok())
        .collect();
    found.dedup();
    found
}

fn places(user: u32) -> [Option<PathBuf>; 3] {
    let is_own = user == rustix::process::geteuid().as_raw();
    let session = is_own.then(|| std::env::var_os(VARIABLE)).flatten();
    let session = session
        .map(PathBuf::from)
        .filter(|place| place.is_absolute());
    [
        session.map(|place| place.join("durum")),
        Some(format!("/run/user/{user}/durum").into()),
        Some(format!("/tmp/durum-{user}").into()),
    ]
}

fn made(place: PathBuf, user: u32) -> io::Result<PathBuf> {
    match DirBuilder::new().mode(0o700).create(&place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Where everybody may make one, another user may have come before.
    is_of(&place, user, 0o077)?;
    Ok(place)
}

/// It is a directory of this user's, and gives others none of these rights.
fn is_of(place: &Path, user: u32, none: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(place)?;
    match found.is_dir() && found.uid() == user && found.mode() & none == 0 {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} is not a directory of user {user} alone; set {VARIABLE} to one that is",
                place.display()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_may_enter_is_not_taken() {
        let user = rustix::process::geteuid().as_raw();
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("durum");
        assert_eq!(made(place.clone(), user).unwrap(), place);
        assert_eq!(fs::metadata(&place).unwrap().mode() & 0o7777, 0o700);
        // There already.
        made(place.clone(), user).unwrap();
        made(place.clone(), user + 1).unwrap_err();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o710)).unwrap();
        made(place.clone(), user).unwrap_err();
        fs::remove_dir(&place).unwrap();
        let other = scratch.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&other, &place).unwrap();
        made(place, user).unwrap_err();
    }
}
