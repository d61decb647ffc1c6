//! The way to a service: a request and its answer, and coming again when the connection or the service has ended.
//!
//! Whoever waits for an answer reads the socket, for others that wait, too: so no thread is woken between the two. A
//! second socket, the bell, brings what the service says unasked, to a thread that sleeps on it.

mod greeting;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use durum_persist::signals::Blocked;
use durum_protocol::frame::{ANSWER_MAX, Frame, Kind};
use durum_protocol::message::{self};
use durum_protocol::{Address, Answer, Names, Note, Request};
use durum_service::{Asked, Error, Liveness, ShowFn, StoreInfo};

use self::greeting::{Greeted, Greeting, answer_of, greet};
use crate::peer::{Peer, USER_VARIABLE};
use crate::socket::{Received, Socket};
use crate::told::{Show, WhenLost};

/// How many descriptors an answer may bring: those of all puddles of a pool.
const FILES_MAX: usize = 1 << 20;

/// How often a request is sent: something may be wrong with it that ends the service.
const ATTEMPTS: usize = 5;

/// How long a client waits for the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// For a service that has ended to come back, or to let the client in again; and for the client's end.
    pub service: Duration,
    /// For an answer that needs no long work.
    pub answer: Duration,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting {
            service: Duration::from_secs(10),
            answer: Duration::from_secs(60),
        }
    }
}

/// Where a service is reached. How is a function, so that who has a connection has no code that finds one.
pub(crate) struct Way {
    name: PathBuf,
    is_named: bool,
    reach: Box<dyn Fn(&Path, Duration) -> Result<Socket, Error> + Send + Sync>,
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Way").field(&self.name).finish()
    }
}

impl Way {
    /// At a socket that has a name: again and again.
    pub(crate) fn named(socket: &Path) -> Way {
        Way {
            name: socket.to_owned(),
            is_named: true,
            reach: Box::new(connect),
        }
    }

    /// By a connection that was made for this process: once. Whoever made it has started the process.
    pub(crate) fn given(socket: Socket) -> Way {
        let socket = Mutex::new(Some(socket));
        Way {
            name: PathBuf::from("the socket that was given"),
            is_named: false,
            reach: Box::new(move |name, _| {
                let given = socket.lock().unwrap_or_else(PoisonError::into_inner).take();
                given.ok_or_else(|| gone(name, "has closed the connection"))
            }),
        }
    }

    fn reach(&self, limit: Duration) -> Result<Socket, Error> {
        (self.reach)(&self.name, limit)
    }
}

/// Connects to a service that the program believes.
fn connect(socket: &Path, limit: Duration) -> Result<Socket, Error> {
    let failed = |error: io::Error| lost(socket, &error);
    let calls = Socket::connect_within(socket, Some(limit)).map_err(failed)?;
    let peer = Peer::of(&calls).map_err(failed)?;
    if !peer.may_serve() {
        return Err(Error::Told {
            kind: durum_service::ErrorKind::User,
            text: format!(
                "{}: user {} is at the other end, not root, this user or durum; set {USER_VARIABLE} if that one may be \
                 trusted with all your data",
                socket.display(),
                peer.uid
            ),
        });
    }
    Ok(calls)
}

/// The way of one client to its service.
#[derive(Debug)]
pub(crate) struct Connection {
    way: Way,
    waiting: Waiting,
    info: StoreInfo,
    next: AtomicU64,
    /// Somebody wants that the program leaves.
    is_asked: AtomicBool,
    state: Mutex<State>,
    /// Somebody has greeted, or the client is over.
    greeted: Condvar,
}

#[derive(Debug)]
struct State {
    /// Absent while the service is away.
    line: Option<Arc<Line>>,
    liveness: Option<Liveness>,
    /// A thread greets the service, and has the state meanwhile no more than others: a client can end while a service
    /// that is stuck keeps it waiting.
    is_greeting: bool,
    /// The client has ended, or the service knows it no more.
    is_over: bool,
    when_lost: WhenLost,
    show: Show,
}

/// A connection, as long as it lasts.
#[derive(Debug)]
struct Line {
    calls: Socket,
    bell: Arc<Socket>,
    /// What the service can do beside.
    features: u64,
    sending: Mutex<()>,
    inbox: Mutex<Inbox>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    answers: HashMap<u64, Received>,
    is_being_read: bool,
    /// Requests under way that may take long: those behind them wait as long.
    long: usize,
}

impl Connection {
    /// Comes to the service as a new client.
    pub(crate) fn open(way: Way, waiting: Waiting) -> Result<Arc<Connection>, Error> {
        // One that starts may be recovering others before it lets anybody in.
        let greeted = greet(&way, None, waiting.answer)?;
        let state = State {
            line: None,
            liveness: None,
            is_greeting: false,
            is_over: false,
            when_lost: WhenLost::default(),
            show: Show::default(),
        };
        let mut info = greeted.welcome.info.clone();
        if way.is_named {
            let name = Address::Service(way.name.clone()).name();
            info.served = Some(mem::replace(&mut info.path, name));
        }
        let connection = Arc::new(Connection {
            way,
            waiting,
            info,
            next: AtomicU64::new(2),
            is_asked: AtomicBool::new(false),
            state: Mutex::new(state),
            greeted: Condvar::new(),
        });
        connection.begin(greeted)?;
        Ok(connection)
    }

    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.way.name
    }

    pub(crate) fn info(&self) -> &StoreInfo {
        &self.info
    }

    pub(crate) fn is_asked_to_leave(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Asks, and waits for the answer. A request whose answer is lost is sent again, marked so.
    ///
    /// # Errors
    /// `ServiceGone`, `ClientUnknown`; what the service answers.
    pub(crate) fn call(
        self: &Arc<Self>,
        request: &Request,
    ) -> Result<(Answer, Vec<OwnedFd>), Error> {
        let message = message::encode(request);
        let mut frame = Frame {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            kind: Kind::Request,
            more: false,
            again: false,
            length: 0,
        };
        for _ in 0..ATTEMPTS {
            let line = self.line(Instant::now() + self.waiting.service)?;
            // One that does not know a request ends the connection.
            if !line.knows(request) {
                return Err(older(self.socket()));
            }
            if matches!(request, Request::Close) {
                // Of one who does not answer soon enough, the service hears by the end of the lock.
                let limit = Some(self.waiting.service);
                let _ = line.calls.wait_at_most(limit, limit);
            }
            match line.ask(frame, &message, is_long(request)) {
                Ok(received) => return self.answer_of(received),
                Err(error) => {
                    tracing::debug!(%error, "the connection to the service has ended");
                    self.drop_line(&line);
                    if error.kind() == io::ErrorKind::TimedOut {
                        return Err(gone(self.socket(), "does not answer"));
                    }
                    frame.again = true;
                }
            }
        }
        Err(gone(
            self.socket(),
            "ends each connection before it answers",
        ))
    }

    /// Whether the service knows a request.
    ///
    /// # Errors
    /// `ServiceGone`, `ClientUnknown`.
    pub(crate) fn knows(self: &Arc<Self>, request: &Request) -> Result<bool, Error> {
        let line = self.line(Instant::now() + self.waiting.service)?;
        Ok(line.knows(request))
    }

    /// Has `show` called when somebody wants to see a pool of this client.
    pub(crate) fn when_asked_to_show(&self, show: Arc<ShowFn>) {
        self.state().show = Show(Some(show));
    }

    /// Has `tell` called when the service has taken this client for gone.
    pub(crate) fn when_lost(&self, tell: Box<dyn FnOnce() + Send>) {
        let mut state = self.state();
        match state.is_over {
            true => tell(),
            false => state.when_lost = WhenLost(Some(tell)),
        }
    }

    /// Ends the client: the service is told by the end of the lock, if it was not told before.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        if let Some(line) = state.line.take() {
            line.end();
        }
        state.liveness = None;
        self.greeted.notify_all();
    }

    /// The answer in a message, or the error in it, which names the store as this client does.
    fn answer_of(&self, received: Received) -> Result<(Answer, Vec<OwnedFd>), Error> {
        let names = Names {
            directory: self.info.directory(),
            place: &self.info.path,
        };
        answer_of(self.socket(), received, |failure| failure.named(names))
    }

    fn over(&self) -> Error {
        Error::ClientUnknown {
            client: self.info.client.to_string(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drop_line(&self, line: &Arc<Line>) {
        line.end();
        let mut state = self.state();
        if state
            .line
            .as_ref()
            .is_some_and(|now| Arc::ptr_eq(now, line))
        {
            state.line = None;
        }
    }

    /// The line, a new one if need be. An attempt that has begun may end after the time.
    fn line(self: &Arc<Self>, until: Instant) -> Result<Arc<Line>, Error> {
        let mut pause = Duration::from_millis(5);
        loop {
            let mut state = self.state();
            if state.is_over {
                return Err(self.over());
            }
            if let Some(line) = &state.line {
                return Ok(line.clone());
            }
            let left = until.saturating_duration_since(Instant::now());
            if state.is_greeting {
                if left.is_zero() {
                    return Err(gone(self.socket(), "does not answer"));
                }
                drop(self.greeted.wait_timeout(state, left));
                continue;
            }
            state.is_greeting = true;
            drop(state);
            let greeting = Greeting(self);
            let client = Some(self.info.client);
            let begun = greet(&self.way, client, self.waiting.service)
                .and_then(|greeted| self.begin(greeted));
            drop(greeting);
            match begun {
                Ok(line) => {
                    tracing::info!(socket = %self.socket().display(), "known to the service again");
                    return Ok(line);
                }
                Err(error @ Error::ServiceGone { .. }) if Instant::now() >= until => {
                    return Err(error);
                }
                Err(Error::ServiceGone { .. }) => {}
                Err(error) => {
                    let mut state = self.state();
                    // Not where the client itself has ended meanwhile.
                    if !state.is_over && matches!(error, Error::ClientUnknown { .. }) {
                        state.is_over = true;
                        if let Some(tell) = state.when_lost.0.take() {
                            tell();
                        }
                    }
                    drop(state);
                    return Err(error);
                }
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// Takes a new line into use: the lock is held before the service is told that it is.
    fn begin(self: &Arc<Self>, greeted: Greeted) -> Result<Arc<Line>, Error> {
        let Greeted {
            line,
            welcome,
            liveness,
        } = greeted;
        if let Some(file) = liveness {
            let mut state = self.state();
            // A client that has ended meanwhile takes no lock any more.
            if state.is_over {
                return Err(self.over());
            }
            // The old one first: closing it afterwards would drop the new lock.
            state.liveness = None;
            let held = Liveness::hold(welcome.info.client, file);
            state.liveness = Some(held.map_err(|error| lost(self.socket(), &error))?);
        }
        let frame = Frame::request(1);
        let ready = line.ask(frame, &message::encode(&Request::Ready), false);
        self.answer_of(ready.map_err(|error| lost(self.socket(), &error))?)?;
        let limit = Some(self.waiting.answer);
        let set = line.calls.wait_at_most(limit, limit);
        set.map_err(|error| lost(self.socket(), &error))?;
        let line = Arc::new(line);
        let mut state = self.state();
        if state.is_over {
            line.end();
            return Err(self.over());
        }
        state.line = Some(line.clone());
        drop(state);
        self.listen(&line);
        Ok(line)
    }

    /// Has a thread sleep on the bell of a line. When the line ends it comes again, so that a service that was started
    /// again knows of the client, though that asks nothing.
    fn listen(self: &Arc<Self>, line: &Arc<Line>) {
        let (connection, bell) = (Arc::downgrade(self), line.bell.clone());
        // The thread inherits the mask: the program's handlers run in the program's threads.
        let _blocked = Blocked::all();
        let begun = thread::Builder::new()
            .name("durum-bell".to_owned())
            .spawn(move || attend(&connection, &bell));
        if let Err(error) = begun {
            tracing::warn!(%error, "nobody listens to the service of the store");
        }
    }
}

fn attend(connection: &Weak<Connection>, bell: &Socket) {
    while let Ok(Some(came)) = bell.receive(1024, 0)
        && let Some(connection) = connection.upgrade()
    {
        match message::decode(&came.bytes) {
            Ok(Note::Leave) => {
                tracing::warn!("somebody asks this program to leave the store, or will end it");
                connection.is_asked.store(true, Ordering::Relaxed);
            }
            Ok(Note::Show { showing, pool }) => {
                let show = connection.state().show.0.clone();
                if let Some(show) = show {
                    show(Asked { showing, pool });
                }
            }
            // Whatever else comes is a reason to come again.
            _ => break,
        }
    }
    // A program that closes all descriptors is to have ended with that.
    thread::sleep(Duration::from_millis(20));
    let mut pause = Duration::from_millis(50);
    // Until the service is back, or nobody needs it.
    while let Some(connection) = connection.upgrade() {
        let state = connection.state();
        let is_lost = state
            .line
            .as_ref()
            .is_none_or(|line| std::ptr::eq(&*line.bell, bell));
        if state.is_over || !is_lost {
            return;
        }
        let line = state.line.clone();
        drop(state);
        if let Some(line) = line {
            connection.drop_line(&line);
        }
        if connection.line(Instant::now()).is_ok() {
            return;
        }
        drop(connection);
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end();
    }
}

impl Line {
    fn knows(&self, request: &Request) -> bool {
        request.needs() & !self.features == 0
    }

    fn ask(&self, frame: Frame, message: &[u8], is_long: bool) -> io::Result<Received> {
        {
            // Parts of two messages must not mix.
            let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
            self.calls.send(frame, message, &[])?;
        }
        self.inbox().long += usize::from(is_long);
        let answer = self.wait_for(frame.number);
        self.inbox().long -= usize::from(is_long);
        answer
    }

    fn wait_for(&self, number: u64) -> io::Result<Received> {
        let mut inbox = self.inbox();
        loop {
            if let Some(answer) = inbox.answers.remove(&number) {
                return Ok(answer);
            }
            if inbox.is_being_read {
                inbox = self
                    .came
                    .wait(inbox)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            inbox.is_being_read = true;
            drop(inbox);
            self.calls.look();
            let came = self.calls.receive(ANSWER_MAX, FILES_MAX);
            inbox = self.inbox();
            inbox.is_being_read = false;
            // Whoever waits takes an answer, or reads on.
            self.came.notify_all();
            match came {
                Ok(Some(answer)) if answer.frame.kind == Kind::Answer => {
                    if answer.frame.number == number {
                        return Ok(answer);
                    }
                    inbox.answers.insert(answer.frame.number, answer);
                }
                Ok(Some(_)) => {}
                Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if inbox.long == 0 {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.calls.shut_down();
        self.bell.shut_down();
    }
}

/// Requests that may take as long as the store is large.
fn is_long(request: &Request) -> bool {
    matches!(
        request,
        Request::GiveUp { .. }
            | Request::RetryQuarantined { .. }
            | Request::FindGarbage { .. }
            | Request::LostFiles
            | Request::StrayFiles
            | Request::RevokePool { .. }
            | Request::AskToLeave { .. }
            | Request::MakeWay
            | Request::FinishMoving
            | Request::GivePuddles { .. }
            | Request::FinishImport
            | Request::ShowPool { .. }
    )
}

fn older(socket: &Path) -> Error {
    Error::Told {
        kind: durum_service::ErrorKind::User,
        text: format!(
            "{}: the service is older than this program, and does not do what it is asked; install the same version of both",
            socket.display()
        ),
    }
}

fn lost(socket: &Path, error: &io::Error) -> Error {
    let problem = format!("cannot be reached: {error}");
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::ServiceGone {
            socket: socket.to_owned(),
            problem,
            cure: "let this user write the socket, and enter each directory on the way to it (`chmod o+x`)",
        },
        _ => gone(socket, &problem),
    }
}

pub(crate) fn gone(socket: &Path, problem: &str) -> Error {
    Error::ServiceGone {
        socket: socket.to_owned(),
        problem: problem.to_owned(),
        cure: "start it (`durumd --store DIR`, or `systemctl start durumd`), or name its socket in DURUM_SOCKET",
    }
}
