//! Who is at the other end of a socket.

use std::io;

use rustix::net::sockopt;

use crate::socket::Socket;

/// The process at the other end, when it connected or listened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process id, as this process sees it; 0 where it does not.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// Names a user as which a service may run, beside root, the user of the program, and `durum`.
pub const USER_VARIABLE: &str = "DURUM_SERVICE_USER";

/// The user that a service of a machine has.
const SERVICE_USER: &str = "durum";

impl Peer {
    /// Who is at the other end.
    ///
    /// # Errors
    /// As the system says.
    pub fn of(socket: &Socket) -> io::Result<Peer> {
        let found = sockopt::socket_peercred(socket.descriptor()?)?;
        Ok(Peer {
            pid: u32::try_from(found.pid.as_raw_nonzero().get()).unwrap_or(0),
            uid: found.uid.as_raw(),
            gid: found.gid.as_raw(),
        })
    }

    /// Whether a program believes this one when it says that it is the service: it can do anything to the program's
    /// data.
    pub fn may_serve(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let named = std::env::var(USER_VARIABLE).ok();
        let named = [Some(SERVICE_USER.to_owned()), named];
        self.uid == 0
            || self.uid == own
            || named
                .into_iter()
                .flatten()
                .any(|name| match name.parse::<u32>() {
                    Ok(uid) => self.uid == uid,
                    Err(_) => user(&name) == Some(self.uid),
                })
    }
}

/// The number of a user.
fn user(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    let mut buffer = vec![0; 16 << 10];
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and the buffer is as long as it says.
    let failed = unsafe {
        libc::getpwnam_r(
            name.as_ptr(),
            entry.as_mut_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
            &mut found,
        )
    };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: it was found, so the entry was written.
    Some(unsafe { entry.assume_init() }.pw_uid)
}
