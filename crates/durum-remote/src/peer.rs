//! Who is at the other end of a socket.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::sockopt;

use crate::socket::Socket;
use crate::users::uid_of;

/// The process at the other end, when it connected or listened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process id, as this process sees it; 0 where it does not.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The groups that it is in besides.
    pub groups: Vec<u32>,
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
            groups: groups(socket)?,
        })
    }

    /// Whether a program believes this one when it says that it is the service: it can do anything to the program's
    /// data.
    pub fn may_serve(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let named = std::env::var(USER_VARIABLE).ok();
        let named = [Some(SERVICE_USER.to_owned()), named];
        let is_it = |name: String| uid_of(&name) == Some(self.uid);
        self.uid == 0 || self.uid == own || named.into_iter().flatten().any(is_it)
    }
}

/// The groups of the process at the other end, when it connected: `SO_PEERGROUPS`.
fn groups(socket: &Socket) -> io::Result<Vec<u32>> {
    let socket = socket.descriptor()?.as_raw_fd();
    let mut groups: Vec<libc::gid_t> = vec![0; 32];
    loop {
        let size = size_of::<libc::gid_t>();
        let mut length = libc::socklen_t::try_from(groups.len() * size).unwrap_or(0);
        // SAFETY: the place is as long as the length says.
        let failed = unsafe {
            libc::getsockopt(
                socket,
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &mut length,
            )
        };
        let found = length as usize / size;
        let error = io::Error::last_os_error();
        match (failed, error.raw_os_error()) {
            (0, _) => {
                groups.truncate(found);
                return Ok(groups);
            }
            // It says how many there are.
            (_, Some(libc::ERANGE)) if found > groups.len() => groups.resize(found, 0),
            _ => return Err(error),
        }
    }
}
