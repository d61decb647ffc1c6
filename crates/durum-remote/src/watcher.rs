//! Watches programs that observe themselves (`docs/internals/observing.md`): finds those that have a store open, and
//! asks them.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use durum_format::Uuid;
use durum_protocol::frame::Frame;
use durum_protocol::message;
use durum_protocol::watching::{self, Question, TOLD_MAX, Told};

use crate::peer::Peer;
use crate::run_directory;
use crate::socket::Socket;

/// So long somebody may take to answer.
const TIME: Duration = Duration::from_secs(5);

/// A program that observes itself.
#[derive(Debug)]
pub struct Watched {
    socket: Socket,
    /// Where it answers.
    pub path: PathBuf,
    /// Its process; 0 where it is in another namespace.
    pub pid: u32,
    /// Its user.
    pub user: u32,
    asked: u64,
}

/// The name of a socket begins with this.
pub fn name_of(store: Uuid) -> String {
    format!("{store}.")
}

/// The programs of a user that have this store open, and observe themselves.
pub fn find(store: Uuid, user: u32) -> Vec<Watched> {
    let begins = name_of(store);
    let mut all = Vec::new();
    for directory in run_directory::find(user) {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let of_store =
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&begins));
        // What a program has left that was killed is refused.
        all.extend(of_store.filter_map(|entry| Watched::connect(&entry.path(), user).ok()));
    }
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
}

impl Watched {
    fn connect(path: &Path, user: u32) -> io::Result<Watched> {
        let socket = Socket::connect_within(path, Some(TIME))?;
        let peer = Peer::of(&socket)?;
        if peer.uid != user {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Watched {
            socket,
            path: path.to_owned(),
            pid: peer.pid,
            user: peer.uid,
            asked: 0,
        })
    }

    /// Has the program export pools into an open directory, which has to be its user's ([`Question::Show`]). It takes
    /// as long as it takes. Nothing more can be asked then.
    ///
    /// # Errors
    /// As for [`Watched::ask`].
    pub fn show(&mut self, pools: &[String], directory: BorrowedFd<'_>) -> io::Result<Told> {
        self.socket.wait_at_most(Some(TIME), None)?;
        let pools = pools.to_vec();
        self.ask_with(&Question::Show { pools }, &[directory])
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// Of the connection; `UnexpectedEof` where the program has closed the store; `InvalidData` for what is no answer.
    pub fn ask(&mut self, question: &Question) -> io::Result<Told> {
        self.ask_with(question, &[])
    }

    fn ask_with(&mut self, question: &Question, files: &[BorrowedFd<'_>]) -> io::Result<Told> {
        self.asked += 1;
        let frame = Frame::request(self.asked);
        let question = message::encode(question);
        self.socket.send(frame, &question, files)?;
        let received = self.socket.receive(TOLD_MAX, 0)?;
        let received = received.ok_or(io::ErrorKind::UnexpectedEof)?;
        if received.frame.number != self.asked {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the answer to another question",
            ));
        }
        watching::told(&received.bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }
}
