//! How a service lets a client in: it hears who comes, says who that is from now on, and waits until the client holds
//! its lock.

use std::io;
use std::os::fd::BorrowedFd;

use durum_persist::file::MediaFile;
use durum_protocol::frame::{Frame, Kind};
use durum_protocol::message::{self, FEATURES, GREETING, VERSION};
use durum_protocol::{Answer, Hello, Request, Welcome};
use durum_service::{Error, StoreInfo};

use crate::answers::{alone, send};
use crate::socket::Socket;

/// The longest first messages of a client, in bytes.
const FIRST_MAX: usize = 1024;

/// What came first.
#[derive(Debug)]
pub enum Heard {
    /// A client.
    Client(Comer),
    /// A client that speaks no version that this service does, from and to. It was told so.
    OtherVersion(u32, u32),
    /// What does not greet as a client does.
    NoClient,
}

/// A client that has greeted.
#[derive(Debug)]
pub struct Comer {
    /// What it has said.
    pub hello: Hello,
    frame: Frame,
}

/// Hears who comes.
///
/// # Errors
/// Of the connection.
pub fn hear(socket: &Socket) -> io::Result<Heard> {
    let Some(received) = socket.receive(FIRST_MAX, 0)? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let frame = received.frame;
    let hello: Result<Hello, _> = message::decode(&received.bytes);
    let greets = |hello: &Hello| hello.greeting == GREETING && frame.kind == Kind::Request;
    let Some(hello) = hello.ok().filter(greets) else {
        return Ok(Heard::NoClient);
    };
    if hello.from > VERSION || hello.to < VERSION {
        let answer = Answer::OtherVersion {
            from: VERSION,
            to: VERSION,
        };
        send(socket, frame, &alone(answer))?;
        return Ok(Heard::OtherVersion(hello.from, hello.to));
    }
    Ok(Heard::Client(Comer { hello, frame }))
}

impl Comer {
    /// What both can do besides.
    pub fn features(&self) -> u64 {
        self.hello.features & FEATURES
    }

    /// Says that it is not let in, and why.
    ///
    /// # Errors
    /// Of the connection.
    pub fn turn_away(&self, socket: &Socket, error: Error) -> io::Result<()> {
        send(socket, self.frame, &alone(Answer::Failed(error.into()))).map(drop)
    }

    /// Says who it is, gives it the bell, and the file of its lock unless it holds that yet, and waits until it says
    /// that it does. That message is to be answered.
    ///
    /// # Errors
    /// Of the connection.
    pub fn welcome(
        &self,
        socket: &Socket,
        info: StoreInfo,
        liveness: Option<&MediaFile>,
        bell: Socket,
    ) -> io::Result<Ready> {
        let answer = message::encode(&Answer::Welcome(Welcome {
            version: VERSION,
            features: self.features(),
            info,
        }));
        let liveness = liveness.map(MediaFile::as_fd);
        let files: Vec<BorrowedFd<'_>> = liveness.into_iter().chain([bell.descriptor()?]).collect();
        socket.send(self.frame.answer(), &answer, &files)?;
        drop(files);
        drop(bell);
        let Some(ready) = socket.receive(FIRST_MAX, 0)? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        if !matches!(message::decode(&ready.bytes), Ok(Request::Ready)) {
            return Err(io::Error::other("it does not say that it holds its lock"));
        }
        Ok(Ready(ready.frame))
    }
}

/// A client that holds its lock.
#[derive(Debug)]
pub struct Ready(Frame);

impl Ready {
    /// Says whether it is let in now.
    ///
    /// # Errors
    /// Of the connection.
    pub fn answer(self, socket: &Socket, entered: Result<(), Error>) -> io::Result<()> {
        let answer = entered.map_or_else(|error| Answer::Failed(error.into()), |()| Answer::Done);
        send(socket, self.0, &alone(answer)).map(drop)
    }
}
