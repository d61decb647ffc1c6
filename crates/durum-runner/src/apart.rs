//! A runner that is a process of its own: [`serve`] is that process (or [`keep`](crate::keeper::keep), which outlives
//! being killed), and [`Apart`] is how another one has it run code. So a service that has given up all that starts
//! processes has code run, and the code has a user id that is not the service's where the runner has.
//!
//! ```text
//! runner   one packet: nothing, or why it runs no code | waits for packets
//! service  a packet for each code: its limits | descriptors: the code, its socket, a pipe
//! runner   a thread for each: runs it | the pipe: how it ended | closes the pipe
//! service  closes the connection: the runner ends, and all that it runs
//! ```
//!
//! The runner believes the service. It looks only whether anybody could still write the code.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg, sockopt,
};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::code::Code;
use crate::limits::Limits;
use crate::runner::{Here, Runner};
use crate::running::Ended;

/// How long a runner has to say that it is there.
const GREETING_TIME: Duration = Duration::from_secs(10);

/// How long after its time is over the end of code is told at the latest.
const TELLING_TIME: Duration = Duration::from_secs(10);

/// The most bytes of what is said, in a packet or by a pipe.
const WORDS_MAX: usize = 16 << 10;

/// The code, its socket, and the pipe.
const DESCRIPTORS: usize = 3;

const BESIDE: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS));

/// A runner that is a process of its own.
#[derive(Debug)]
pub struct Apart(OwnedFd);

impl Apart {
    /// By a connection to it, of packets.
    ///
    /// # Errors
    /// Where it does not say in time that it is there, or runs no code: why not.
    pub fn over(connection: OwnedFd) -> io::Result<Apart> {
        sockopt::set_socket_timeout(&connection, sockopt::Timeout::Recv, Some(GREETING_TIME))?;
        let mut words = vec![0; WORDS_MAX];
        // A packet without bytes looks like the end: so there is one.
        let count = rustix::io::read(&connection, &mut words[..])?;
        match words.get(..count) {
            Some([READY]) => Ok(Apart(connection)),
            Some([]) | None => Err(gone()),
            Some(why) => Err(io::Error::other(String::from_utf8_lossy(why))),
        }
    }
}

/// What a runner says that runs code.
const READY: u8 = b'!';

fn gone() -> io::Error {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the process that runs code is gone: start the service again",
    )
}

/// It has not told how the code has ended. Another one may have followed it ([`keep`](crate::keeper::keep)): who asks
/// again finds out.
fn killed() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the process that ran it was killed",
    )
}

impl Runner for Apart {
    fn run(&self, code: &Code, socket: OwnedFd, limits: &Limits) -> io::Result<Ended> {
        let (answer, tells) = pipe_with(PipeFlags::CLOEXEC)?;
        let request = encode(limits);
        let beside = [code.as_fd(), socket.as_fd(), tells.as_fd()];
        let sent = retried(|| {
            let mut space = [MaybeUninit::uninit(); BESIDE];
            let mut control = SendAncillaryBuffer::new(&mut space);
            control.push(SendAncillaryMessage::ScmRights(&beside));
            let parts = [IoSlice::new(&request)];
            sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL)
        });
        sent.map_err(|_| gone())?;
        // Its ends are the runner's from here on.
        drop((socket, tells));
        let told = hear(File::from(answer), limits.time + TELLING_TIME)?;
        decode_end(&told).unwrap_or_else(|| Err(killed()))
    }
}

/// All that is told. Where it takes longer, nobody runs the code: a keeper may have no room to make a runner.
fn hear(mut answer: File, at_most: Duration) -> io::Result<Vec<u8>> {
    let until = Instant::now() + at_most;
    let (mut told, mut part) = (Vec::new(), [0; 512]);
    while told.len() < WORDS_MAX {
        let left = until.saturating_duration_since(Instant::now());
        let left = left.try_into().map_err(io::Error::other)?;
        let mut events = [PollFd::new(&answer, PollFlags::IN)];
        match retried(|| poll(&mut events, Some(&left)))? {
            0 => return Err(killed()),
            _ => match answer.read(&mut part)? {
                0 => break,
                count => told.extend(part.iter().take(count)),
            },
        }
    }
    Ok(told)
}

/// Runs what is asked for by this connection, until its other end is closed. To be called by a process that does
/// nothing else, and ends then: all that runs ends with it.
///
/// # Errors
/// Of the connection.
pub fn serve(connection: OwnedFd) -> io::Result<()> {
    match greet(connection.as_fd())? {
        Some(runner) => answer(connection.as_fd(), runner),
        None => Ok(()),
    }
}

/// Says that code is run, or why none is.
pub(crate) fn greet(connection: BorrowedFd<'_>) -> io::Result<Option<Here>> {
    match Here::new() {
        Ok(runner) => {
            rustix::io::write(connection, &[READY])?;
            Ok(Some(runner))
        }
        Err(missing) => {
            rustix::io::write(connection, missing.to_string().as_bytes())?;
            Ok(None)
        }
    }
}

/// Runs what is asked for, until the other end is closed.
pub(crate) fn answer(connection: BorrowedFd<'_>, runner: Here) -> io::Result<()> {
    let runner = Arc::new(runner);
    while let Some(asked) = receive(connection)? {
        let runner = runner.clone();
        let answer = asked.answer.try_clone();
        let begun = thread::Builder::new().spawn(move || asked.be_answered(&*runner));
        if let (Err(error), Ok(mut answer)) = (begun, answer) {
            // Code that runs may have taken all threads that there are. This process goes on.
            let _ = answer.write_all(&encode_end(&Err(error)));
        }
    }
    Ok(())
}

/// What a packet asks for.
struct Asked {
    limits: Limits,
    code: OwnedFd,
    socket: OwnedFd,
    answer: File,
}

impl Asked {
    fn be_answered(self, runner: &dyn Runner) {
        let Asked {
            limits,
            code,
            socket,
            mut answer,
        } = self;
        let ended = Code::sealed(code)
            .map_err(io::Error::other)
            .and_then(|code| runner.run(&code, socket, &limits));
        // Nobody may hear it any more.
        let _ = answer.write_all(&encode_end(&ended));
    }
}

/// The next packet that asks for something; `None` at the end.
fn receive(connection: BorrowedFd<'_>) -> io::Result<Option<Asked>> {
    loop {
        let (mut bytes, mut space) = ([0; REQUEST], [MaybeUninit::uninit(); BESIDE]);
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let count = retried(|| {
            let parts = &mut [IoSliceMut::new(&mut bytes)];
            recvmsg(connection, parts, &mut control, RecvFlags::CMSG_CLOEXEC)
        })?
        .bytes;
        if count == 0 {
            return Ok(None);
        }
        let files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let mut files = files.flatten();
        if let (REQUEST, Some(code), Some(socket), Some(answer)) =
            (count, files.next(), files.next(), files.next())
        {
            return Ok(Some(Asked {
                limits: decode(&bytes),
                code,
                socket,
                answer: answer.into(),
            }));
        }
    }
}

fn retried<T>(mut attempt: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match attempt() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// The bytes of a request: six numbers.
const REQUEST: usize = 48;

fn encode(limits: &Limits) -> [u8; REQUEST] {
    let numbers = [
        limits.processor.as_millis() as u64,
        limits.time.as_millis() as u64,
        limits.memory,
        limits.files,
        limits.threads,
        limits.space,
    ];
    let mut bytes = [0; REQUEST];
    for (bytes, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        bytes.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

fn decode(bytes: &[u8; REQUEST]) -> Limits {
    let (numbers, _) = bytes.as_chunks();
    let mut numbers = numbers.iter().map(|bytes| u64::from_ne_bytes(*bytes));
    let mut next = || numbers.next().unwrap_or_default();
    Limits {
        processor: Duration::from_millis(next()),
        time: Duration::from_millis(next()),
        memory: next(),
        files: next(),
        threads: next(),
        space: next(),
    }
}

/// Whether the system has no room for one more process or thread, or no memory: it may have some later.
pub fn is_for_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory
    )
}

/// How code ended: what it is, a number, and words.
fn encode_end(ended: &io::Result<Ended>) -> Vec<u8> {
    let text = |error: &io::Error| error.to_string();
    let (kind, number, words) = match ended {
        Ok(Ended::Done) => (b'd', 0, String::new()),
        Ok(Ended::Failed { code, told }) => (b'f', i64::from(*code), told.clone()),
        Ok(Ended::Signalled { signal, told }) => (b's', i64::from(*signal), told.clone()),
        Ok(Ended::OverProcessor(time)) => (b'p', time.as_millis() as i64, String::new()),
        Ok(Ended::OverTime(time)) => (b't', time.as_millis() as i64, String::new()),
        Ok(Ended::OverThreads(threads)) => (b'n', *threads as i64, String::new()),
        Err(error) => (b'e', i64::from(is_for_now(error)), text(error)),
    };
    let mut bytes = vec![kind];
    bytes.extend(number.to_ne_bytes());
    bytes.extend(words.bytes());
    bytes
}

/// `None` where the runner has ended before it could say it all.
fn decode_end(bytes: &[u8]) -> Option<io::Result<Ended>> {
    let (kind, rest) = bytes.split_first()?;
    let (number, words) = rest.split_first_chunk()?;
    let number = i64::from_ne_bytes(*number);
    let told = String::from_utf8_lossy(words).into_owned();
    let time = Duration::from_millis(number as u64);
    Some(Ok(match kind {
        b'd' => Ended::Done,
        b'f' => Ended::Failed {
            code: number as i32,
            told,
        },
        b's' => Ended::Signalled {
            signal: number as i32,
            told,
        },
        b'p' => Ended::OverProcessor(time),
        b't' => Ended::OverTime(time),
        b'n' => Ended::OverThreads(number as u64),
        b'e' if number != 0 => return Some(Err(io::Error::new(io::ErrorKind::WouldBlock, told))),
        b'e' => return Some(Err(io::Error::other(told))),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its end of the pipe lies in a packet that nobody takes.
    #[test]
    fn who_tells_nothing_is_not_waited_for_for_ever() {
        let (answer, _tells) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let error = hear(answer.into(), Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        let (answer, tells) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        File::from(tells).write_all(b"told").unwrap();
        let told = hear(answer.into(), Duration::from_millis(20)).unwrap();
        assert_eq!(told, b"told");
    }

    #[test]
    fn what_is_said_is_heard() {
        let limits = Limits {
            files: 7,
            threads: 8,
            ..Limits::default()
        };
        assert_eq!(
            format!("{:?}", decode(&encode(&limits))),
            format!("{limits:?}")
        );
        let told = || "its last words".to_owned();
        for ended in [
            Ended::Done,
            Ended::Failed {
                code: 134,
                told: told(),
            },
            Ended::Signalled {
                signal: 11,
                told: told(),
            },
            Ended::OverProcessor(Duration::from_secs(3)),
            Ended::OverTime(Duration::from_millis(1500)),
            Ended::OverThreads(7),
        ] {
            let heard = decode_end(&encode_end(&Ok(ended.clone()))).unwrap();
            assert_eq!(heard.unwrap(), ended);
        }
        let failed = encode_end(&Err(io::Error::other("no memory")));
        assert_eq!(
            decode_end(&failed).unwrap().unwrap_err().to_string(),
            "no memory"
        );
        let full = io::Error::from_raw_os_error(libc::EAGAIN);
        let heard = decode_end(&encode_end(&Err(full))).unwrap().unwrap_err();
        assert!(is_for_now(&heard));
        for less in 0..9 {
            assert!(decode_end(&failed[..less]).is_none());
        }
    }
}
