//! Greeting a service: who comes, and what it answers.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use durum_format::Uuid;
use durum_protocol::frame::{ANSWER_MAX, Frame};
use durum_protocol::message::{self, FEATURES, GREETING, VERSION};
use durum_protocol::{Answer, Failure, Hello, Welcome};
use durum_service::Error;

use super::{Connection, Inbox, Line, Way, gone, lost};
use crate::socket::{Received, Socket};

/// What a new line begins with.
pub(super) struct Greeted {
    pub(super) line: Line,
    pub(super) welcome: Welcome,
    pub(super) liveness: Option<OwnedFd>,
}

/// A thread greets the service until this is dropped.
pub(super) struct Greeting<'c>(pub(super) &'c Connection);

impl Drop for Greeting<'_> {
    fn drop(&mut self) {
        self.0.state().is_greeting = false;
        self.0.greeted.notify_all();
    }
}

/// Connects, and says who comes.
pub(super) fn greet(way: &Way, client: Option<Uuid>, limit: Duration) -> Result<Greeted, Error> {
    let calls = way.reach(limit)?;
    let socket = way.name.as_path();
    let failed = |error: io::Error| lost(socket, &error);
    let hello = Hello {
        greeting: GREETING,
        from: VERSION,
        to: VERSION,
        features: FEATURES,
        client,
    };
    let frame = Frame::request(0);
    calls
        .send(frame, &message::encode(&hello), &[])
        .map_err(failed)?;
    let received = calls.receive(ANSWER_MAX, 2).map_err(failed)?;
    let received = received.ok_or_else(|| gone(socket, "has closed the connection"))?;
    let (answer, mut files) = answer_of(socket, received, |failure| failure)?;
    let welcome = match answer {
        Answer::Welcome(welcome) => welcome,
        Answer::OtherVersion { from, to } => {
            return Err(Error::Told {
                kind: durum_service::ErrorKind::User,
                text: format!(
                    "{}: the service speaks the versions {from} to {to} of the protocol, this program {VERSION}; \
                     install the same version of both",
                    socket.display()
                ),
            });
        }
        _ => return Err(gone(socket, "answers what was not asked")),
    };
    let bell = files.pop().ok_or_else(|| gone(socket, "gave no bell"))?;
    Ok(Greeted {
        line: Line {
            calls,
            bell: Arc::new(Socket::over(bell).map_err(failed)?),
            features: welcome.features,
            sending: Mutex::new(()),
            inbox: Mutex::new(Inbox::default()),
            came: Condvar::new(),
        },
        welcome,
        liveness: files.pop(),
    })
}

/// The answer in a message, or the error in it, as `told` gives it.
pub(super) fn answer_of(
    socket: &Path,
    received: Received,
    told: impl FnOnce(Failure) -> Failure,
) -> Result<(Answer, Vec<OwnedFd>), Error> {
    match message::decode(&received.bytes) {
        Ok(Answer::Failed(failure)) => Err(told(failure).into()),
        Ok(answer) => Ok((answer, received.files)),
        Err(error) => {
            tracing::error!(%error, "an answer of the service cannot be read");
            Err(gone(socket, "says what this program cannot read"))
        }
    }
}
