//! Code that completes what a client has left that is gone (docs/internals/resumption.md). It is a stranger's: it runs
//! in bounds ([`durum_runner`]), and it is answered what completing takes, and nothing else.
//!
//! ```text
//! host     the deposit, its sum compared | a client of its own, of the user who has left the sections | a socket pair
//!          the code is started
//! code     greets | TakeOver | its sections go on: puddles that it needs | SectionsDone | Close | exit 0
//! host     the process has ended: so does its client, or is recovered as any that has died; others get its pools
//! ```

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
use durum_persist::file::MediaFile;
use durum_protocol::frame::{Kind, REQUEST_MAX};
use durum_protocol::{Answer, Failure, Request, message};
use durum_runner::{Code, CodeError, Ended, Hash, Limits, Runner, is_for_now};
use durum_service::{Caller, Embedded, Error, Host, Life, Result, Service as _};

use crate::answers::{self, Reply, alone, refused, send};
use crate::greeting::{self, Heard};
use crate::socket::Socket;
use crate::users;

/// For code to take what was sent.
const SENDING_TIME: Duration = Duration::from_secs(10);

/// How often code is started that was killed.
const STARTS_MAX: u32 = 3;

/// How long after an attempt for which the system had no room the next one comes.
const PAUSE: Duration = Duration::from_millis(200);

/// For code to end whose runner has been killed: the system kills the code then.
const DYING_TIME: Duration = Duration::from_secs(10);

/// Why sections were not completed. They are as they were, or as the code has left them, which is the same to whoever
/// goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotCompleted {
    /// The client has deposited no code.
    NoCode,
    /// What it has deposited could not be copied.
    NoCopy(CodeError),
    /// The code could not be started.
    NotStarted(io::Error),
    /// The code has ended too early, or not in time.
    Ended(Ended),
    /// It has ended as if all was done, and has not said so.
    NotSaid,
    /// Whoever runs the code is gone, and the code is not: nobody may write its pools until it has ended, and the store
    /// is opened anew.
    Lives,
    /// Of the store.
    Store(Error),
}

impl fmt::Display for NotCompleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotCompleted::NoCode => f.write_str("its program has deposited no code"),
            NotCompleted::NoCopy(error) => error.fmt(f),
            NotCompleted::NotStarted(error) => write!(f, "the code could not be started: {error}"),
            NotCompleted::Ended(ended) => write!(f, "the code did not complete it: {ended}"),
            NotCompleted::NotSaid => f.write_str("the code has ended and has not completed it"),
            NotCompleted::Lives => {
                f.write_str("whoever runs the code is gone, and it has not ended")
            }
            NotCompleted::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotCompleted {}

impl NotCompleted {
    /// The option that lets code have more, where it has had all that it may.
    pub fn more(&self) -> Option<&'static str> {
        match self {
            NotCompleted::Ended(Ended::OverProcessor(_)) => Some("--code-limit processor=SECONDS"),
            NotCompleted::Ended(Ended::OverTime(_)) => Some("--code-limit time=SECONDS"),
            NotCompleted::Ended(Ended::OverThreads(_)) => Some("--code-limit threads=N"),
            _ => None,
        }
    }
}

impl NotCompleted {
    /// Whether it was killed, or who runs it: by somebody, or as the system had no memory left. Code cannot kill
    /// itself, but it can be what takes the memory.
    fn was_killed(&self) -> bool {
        match self {
            NotCompleted::Ended(Ended::Signalled { signal, .. }) => *signal == libc::SIGKILL,
            NotCompleted::NotStarted(error) => error.kind() == io::ErrorKind::ConnectionAborted,
            _ => false,
        }
    }

    /// Whether it has not begun, as the system has no room just now: others' code may have taken that.
    fn may_begin_later(&self) -> bool {
        matches!(self, NotCompleted::NotStarted(error) if is_for_now(error))
    }
}

impl From<Error> for NotCompleted {
    fn from(error: Error) -> NotCompleted {
        NotCompleted::Store(error)
    }
}

/// Has the code that a client has deposited complete what it has left. It is gone. All of it is durable on return,
/// and its pools may be opened. Code that is killed is started again, a few times, and so is code that the system had
/// no room for. All attempts together have the time and the space that the limits allow. Nobody else who uses the store
/// waits for it. This thread waits, and the code ends with it.
///
/// # Errors
/// As they say; the client's pools are refused as before, and whoever asks for them is told why.
pub fn complete(
    host: &Arc<Host>,
    of: Uuid,
    runner: &dyn Runner,
    limits: &Limits,
) -> std::result::Result<(), NotCompleted> {
    let deposited = deposited(host, of);
    let completed = deposited.and_then(|code| complete_within(&code, host, of, runner, limits));
    if let Err(why) = &completed {
        host.note_not_completed(of, &why.to_string())?;
    }
    completed
}

/// Starts code until it has completed what was left, or may not be started again.
fn complete_within(
    code: &Code,
    host: &Arc<Host>,
    of: Uuid,
    runner: &dyn Runner,
    limits: &Limits,
) -> std::result::Result<(), NotCompleted> {
    let until = Instant::now() + limits.time;
    let (mut left, mut starts) = (limits.clone(), 0);
    loop {
        let completed = attempt(code, host, of, runner, &mut left);
        let Err(why) = completed else {
            return Ok(());
        };
        starts += u32::from(!why.may_begin_later());
        let is_again = why.may_begin_later() || why.was_killed() && starts < STARTS_MAX;
        if why.may_begin_later() {
            thread::sleep(PAUSE.min(limits.time));
        }
        left.time = until.saturating_duration_since(Instant::now());
        // Sections go on where it has left them, as after any crash. Somebody else may have come first.
        if !is_again || left.time.is_zero() || !host.to_complete()?.contains(&of) {
            return Err(match why {
                NotCompleted::Ended(Ended::OverTime(_)) => {
                    NotCompleted::Ended(Ended::OverTime(limits.time))
                }
                why => why,
            });
        }
    }
}

fn deposited(host: &Host, of: Uuid) -> std::result::Result<Code, NotCompleted> {
    let bytes = host.code_of(of)?.ok_or(NotCompleted::NoCode)?;
    Code::copied(&bytes, Hash::of(&bytes)).map_err(NotCompleted::NoCopy)
}

/// As [`complete`], with code that somebody else has given.
///
/// # Errors
/// As they say; the client's pools are refused as before.
pub fn complete_with(
    code: &Code,
    host: &Arc<Host>,
    of: Uuid,
    runner: &dyn Runner,
    limits: &Limits,
) -> std::result::Result<(), NotCompleted> {
    attempt(code, host, of, runner, &mut limits.clone())
}

/// One start of the code. What it has made of puddles, the next one may not make any more.
fn attempt(
    code: &Code,
    host: &Arc<Host>,
    of: Uuid,
    runner: &dyn Runner,
    limits: &mut Limits,
) -> std::result::Result<(), NotCompleted> {
    let (client, liveness) = host.client_elsewhere(user_of(host, of))?;
    let id = client.id();
    let mut session = Session {
        client,
        of,
        pools: Vec::new(),
        space: limits.space,
        has_said: false,
        has_closed: false,
    };
    let ended = run(&mut session, &liveness, code, runner, limits);
    limits.space = session.space;
    // ORDER: its process has ended before others may write what it has mapped; who runs it has seen that, or is gone.
    if ended.is_err() && !is_gone_within(host, id, DYING_TIME)? {
        return Err(NotCompleted::Lives);
    }
    drop(liveness);
    // It has no process any more: what it has let go of is others'. What it has left is replayed.
    let closed = session.has_closed && session.client.close().is_ok();
    let left = match closed {
        true => Ok(()),
        false => host.recover_client(id).map(drop),
    };
    left.and_then(|()| host.forget_client(id))?;
    match ended.map_err(NotCompleted::NotStarted)? {
        _ if session.has_said => Ok(()),
        Ended::Done => Err(NotCompleted::NotSaid),
        ended => Err(NotCompleted::Ended(ended)),
    }
}

/// Whether a client has no process that holds its lock, or has none any more after this time.
fn is_gone_within(host: &Host, client: Uuid, time: Duration) -> Result<bool> {
    let until = Instant::now() + time;
    while matches!(host.life_of(client)?, Life::Certain(_)) {
        if Instant::now() > until {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// Runs the code, and answers it, until it has ended.
fn run(
    session: &mut Session,
    liveness: &MediaFile,
    code: &Code,
    runner: &dyn Runner,
    limits: &Limits,
) -> io::Result<Ended> {
    let (ours, its) = Socket::pair()?;
    ours.wait_at_most(Some(SENDING_TIME), None)?;
    let its_end = its.descriptor()?.try_clone_to_owned()?;
    drop(its);
    thread::scope(|scope| {
        let answering = scope.spawn(|| session.answer(&ours, liveness));
        let ended = runner.run(code, its_end, limits);
        // All that it has sent is there, and is answered yet. Its end may be open still: in a message to the bell,
        // which nobody takes.
        ours.shut_down();
        let _ = answering.join();
        ended
    })
}

/// Who has left sections. Where the registry names no user, it was one who opened the directory, as this process does.
fn user_of(host: &Host, client: Uuid) -> Caller {
    match host.user_of(client) {
        Some(uid) => users::caller(uid),
        None => Caller::new(
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
            Vec::new(),
        ),
    }
}

/// What the code is answered.
struct Session {
    client: Embedded,
    /// Whose sections it completes.
    of: Uuid,
    /// The pools that it has taken over. It keeps them until its process has ended: it has them mapped until then,
    /// whatever it says.
    pools: Vec<Uuid>,
    /// Bytes of puddles that it may make yet.
    space: u64,
    /// All sections have ended.
    has_said: bool,
    has_closed: bool,
}

impl Session {
    /// Answers until the code has closed its end.
    fn answer(&mut self, socket: &Socket, liveness: &MediaFile) -> io::Result<()> {
        let Heard::Client(comer) = greeting::hear(socket)? else {
            return Err(io::Error::other("it does not greet as a client does"));
        };
        let (_bell, its_bell) = Socket::pair()?;
        let ready = comer.welcome(socket, self.client.info(), Some(liveness), its_bell)?;
        ready.answer(socket, Ok(()))?;
        while !self.has_closed {
            let Some(received) = socket.receive(REQUEST_MAX, 0)? else {
                break;
            };
            if received.frame.kind != Kind::Request {
                return Err(io::Error::other("it sends what is no request"));
            }
            let request = message::decode(&received.bytes).map_err(io::Error::other)?;
            let reply = self.reply(&request);
            let reply = reply.unwrap_or_else(|error| alone(Answer::Failed(Failure::from(error))));
            send(socket, received.frame, &reply)?;
        }
        Ok(())
    }

    fn reply(&mut self, request: &Request) -> Result<Reply> {
        match request {
            Request::Ping
            | Request::OpenPuddles { .. }
            | Request::ReopenPuddle { .. }
            | Request::RemovePuddle { .. }
            | Request::RegisterLogSpace { .. }
            | Request::RegisterType { .. }
            | Request::Meanings { .. }
            | Request::TypeText { .. } => answers::to_own(&self.client, request, false),
            Request::CreatePuddle { kind, size, .. } => {
                self.ensure_may_make(*kind, *size)?;
                let made = answers::to_own(&self.client, request, false)?;
                self.space -= size;
                Ok(made)
            }
            Request::Interrupted => {
                let mut all = self.client.interrupted()?;
                all.retain(|left| left.client == self.of);
                Ok(alone(Answer::Interrupted(all)))
            }
            Request::TakeOver { client } if *client == self.of => {
                let taken = answers::to_take_over(&self.client, self.of, false)?;
                if let Answer::TakenOver { pools, .. } = &taken.0 {
                    self.pools.extend(pools.iter().map(|pool| pool.uuid));
                }
                Ok(taken)
            }
            Request::ClosePool { pool } if self.pools.contains(pool) => Ok(alone(Answer::Done)),
            Request::SectionsDone { client } if *client == self.of => {
                let done = answers::to_own(&self.client, request, false)?;
                self.has_said = true;
                Ok(done)
            }
            Request::Close => {
                self.has_closed = true;
                Ok(alone(Answer::Done))
            }
            _ => Err(refused("code that completes sections is not answered that")),
        }
    }

    /// A pool that it has taken over may grow, and it has logs. It makes no sections that somebody would have to
    /// complete in turn.
    fn ensure_may_make(&self, kind: PuddleKind, size: u64) -> Result<()> {
        if matches!(kind, PuddleKind::Sections | PuddleKind::Code) {
            return Err(refused("code that completes sections begins none"));
        }
        match size <= self.space {
            true => Ok(()),
            false => Err(refused(format!(
                "{size} bytes more are asked for, and code that completes sections may have {} more (the limit \"space\")",
                self.space
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
