//! Ending another client of the same store.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use durum_format::Uuid;
use durum_protocol::{Answer, Request};
use durum_service::{Error, ErrorKind, Result, Service};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Remote;

/// How long the end and the recovery of a client may take that was killed.
const RECOVERY_TIME: Duration = Duration::from_secs(20);

impl Remote {
    /// Asks a client to leave, and ends its process if it has not after `grace`, by this process's own right to do so.
    /// Its pools are recovered on return.
    ///
    /// # Errors
    /// `ClientUnknown`; `NotPermitted` for a process that this one may not end.
    pub fn kick(&self, client: Uuid, grace: Duration) -> Result<()> {
        let pid = self.process_of(client)?;
        // Held from here on: the number cannot become another process's that is ended instead.
        let process = open_process(pid);
        if self.ask_to_leave(client, grace)? {
            return Ok(());
        }
        let refused = |text: String| Error::Told {
            kind: ErrorKind::System,
            text,
        };
        if self.process_of(self.info().client)? != std::process::id() {
            let text = "this program does not see the processes that the service sees: it is in another pid namespace; \
                        end the process from where the service runs";
            return Err(refused(text.to_owned()));
        }
        // Its client lives yet, so the process is the one that was opened.
        if self.process_of(client)? != pid {
            return Err(refused(format!(
                "client {client} is another process now; try again"
            )));
        }
        let killed = process.and_then(|process| Ok(pidfd_send_signal(process, Signal::KILL)?));
        killed.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::NotPermitted {
                what: format!("process {pid}"),
                operation: "ended",
                uid: rustix::process::geteuid().as_raw().into(),
                cure: "its own user or root may do that",
            },
            _ => refused(format!("process {pid} could not be ended: {error}")),
        })?;
        match self.ask_to_leave(client, RECOVERY_TIME) {
            Ok(true) | Err(Error::ClientUnknown { .. }) => Ok(()),
            Ok(false) => Err(refused(format!(
                "process {pid} was killed, and its client is not recovered yet; look again: `durum clients`"
            ))),
            Err(error) => Err(error),
        }
    }

    /// The process of a client, as the service sees it.
    fn process_of(&self, client: Uuid) -> Result<u32> {
        let clients = self.clients()?;
        let found = clients.iter().find(|found| found.client == client);
        let found = found.ok_or_else(|| Error::ClientUnknown {
            client: client.to_string(),
        })?;
        Ok(found.pid)
    }

    fn ask_to_leave(&self, client: Uuid, wait: Duration) -> Result<bool> {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        match self.ask(&Request::AskToLeave { client, wait_ms })?.0 {
            Answer::HasLeft(has_left) => Ok(has_left),
            _ => Err(self.strange()),
        }
    }
}

fn open_process(pid: u32) -> io::Result<OwnedFd> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| io::Error::other("its number is none"))?;
    Ok(pidfd_open(number, PidfdFlags::empty())?)
}
