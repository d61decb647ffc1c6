//! A program that observes itself answers those who watch it (`docs/internals/observing.md`): [`numbers`] are what it
//! tells, and [`show`] gives them pools as they are at one moment.
//!
//! One thread, at a socket of the program's user. It waits for a watcher for a tenth of a second at most, has a few of
//! them at a time, and holds the store only while it looks at it: nothing of the program waits for a watcher.

mod numbers;
mod show;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use durum_persist::count;
use durum_persist::signals::Blocked;
use durum_protocol::frame::{Frame, Kind};
use durum_protocol::message;
use durum_protocol::watching::{self, QUESTION_MAX, Question, Told, Why};
use durum_remote::peer::Peer;
use durum_remote::run_directory;
use durum_remote::socket::{Received, Socket};
use durum_remote::watcher;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::opened::{Leaving, Observed, StoreInner};

/// The most that watch at a time. When one more comes, the one goes that has asked nothing for longest.
const WATCHERS_MAX: usize = 8;

/// So long the thread waits for one who has begun a question, or takes no answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// What answers nobody for so long since it was made has been left by a program that was killed.
const LEFT: Duration = Duration::from_secs(10);

/// Begins to answer, if the program wants that. One that cannot goes on all the same: the log says why.
pub(crate) fn attend(store: &Arc<StoreInner>) {
    if !store.options.observe {
        return;
    }
    match begin(store) {
        Ok(here) => drop(store.observed.set(Box::new(here))),
        Err(error) => {
            tracing::warn!(store = %store.info.path.display(), %error, "nobody can watch the program");
        }
    }
}

fn begin(store: &Arc<StoreInner>) -> io::Result<Here> {
    let directory = run_directory::make()?;
    remove_left(&directory, &watcher::name_of(store.info.uuid));
    let name = watcher::name_of(store.info.uuid);
    // A program may have several stores open that a service serves as one.
    let name = format!("{name}{}.{}", std::process::id(), store.key);
    let here = Here::listen(directory.join(name))?;
    let watched = Watched {
        store: Arc::downgrade(store),
        leaving: store.leaving.clone(),
        since: Instant::now(),
        shows: Arc::default(),
    };
    let socket = here.socket.clone();
    // It inherits the mask: the program's handlers run in the program's threads.
    let blocked = Blocked::all();
    let thread = thread::Builder::new().name("durum-observe".to_owned());
    let begun = thread.spawn(move || watched.attend(&socket));
    drop(blocked);
    match begun {
        Ok(_) => Ok(here),
        Err(error) => {
            here.stop();
            Err(error)
        }
    }
}

/// Removes sockets of programs that had the store open and were killed.
fn remove_left(directory: &Path, begins: &str) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(begins)) {
        let made = entry.metadata().and_then(|found| found.modified());
        // One that was made just now may not listen yet.
        let is_old = made.is_ok_and(|made| {
            SystemTime::now()
                .duration_since(made)
                .is_ok_and(|age| age > LEFT)
        });
        if is_old && is_left(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_left(path: &Path) -> bool {
    let tried = Socket::connect_within(path, Some(PATIENCE));
    tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Where watchers come to.
#[derive(Debug)]
struct Here {
    socket: Arc<Socket>,
    path: PathBuf,
}

impl Here {
    fn listen(path: PathBuf) -> io::Result<Here> {
        let socket = match Socket::listen(&path) {
            // Another process had the same number.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left(&path) => {
                fs::remove_file(&path)?;
                Socket::listen(&path)?
            }
            listening => listening?,
        };
        let here = Here {
            socket: Arc::new(socket),
            path,
        };
        // Nobody else comes into the directory, whatever this would have been until now.
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::chmod(&here.path, mode)?;
        Ok(here)
    }
}

impl Observed for Here {
    fn path(&self) -> &Path {
        &self.path
    }

    fn stop(&self) {
        let _ = fs::remove_file(&self.path);
        self.socket.shut_down();
    }
}

/// The thread.
struct Watched {
    store: Weak<StoreInner>,
    /// Whoever drops the last handle waits for those who look at the store.
    leaving: Arc<Leaving>,
    since: Instant,
    /// Somebody is shown pools: one at a time.
    shows: Arc<AtomicBool>,
}

impl Watched {
    /// Answers until the socket is shut down, or the program has closed it behind our back.
    fn attend(&self, socket: &Socket) {
        count::mark_background_thread();
        // Who has asked last is the last one.
        let mut watchers: Vec<Socket> = Vec::new();
        while let Ok((somebody_comes, asking)) = wait(socket, &watchers) {
            let mut answered = Vec::new();
            for at in asking.into_iter().rev() {
                let stays = self.answer(watchers.remove(at));
                answered.extend(stays.ok().flatten());
            }
            watchers.append(&mut answered);
            if somebody_comes {
                match admit(socket) {
                    Ok(Some(watcher)) => watchers.push(watcher),
                    Ok(None) => {}
                    // Where it cannot be accepted, it still waits.
                    Err(_) => thread::sleep(PATIENCE),
                }
                if watchers.len() > WATCHERS_MAX {
                    watchers.remove(0);
                }
            }
        }
    }

    /// Whoever may ask again.
    fn answer(&self, watcher: Socket) -> io::Result<Option<Socket>> {
        let Some(Received {
            frame,
            bytes,
            files,
        }) = watcher.receive_short(QUESTION_MAX, 1)?
        else {
            return Ok(None);
        };
        if frame.kind != Kind::Request {
            return Ok(None);
        }
        let told = match (watching::question(&bytes), files.into_iter().next()) {
            (Ok(Question::Numbers), None) => match self.numbers() {
                Some(numbers) => Told::Numbers(numbers),
                None => return Ok(None),
            },
            (Ok(Question::Show { pools }), Some(directory)) => {
                self.show(watcher, frame, pools, directory);
                return Ok(None);
            }
            _ => Told::Unknown,
        };
        send(&watcher, frame, &told)?;
        Ok(Some(watcher))
    }

    /// Shows pools, in a thread of its own: it takes long.
    fn show(&self, watcher: Socket, frame: Frame, pools: Vec<String>, directory: OwnedFd) {
        if self.shows.swap(true, Ordering::Acquire) {
            let told = Told::NotShown {
                problem: "the program is just showing its pools to somebody else".to_owned(),
                why: Why::Refused,
            };
            let _ = send(&watcher, frame, &told);
            return;
        }
        let (known, leaving, shows) =
            (self.store.clone(), self.leaving.clone(), self.shows.clone());
        let show = move || {
            let mut told = None;
            leaving.while_leaving(|| {
                let store = known.upgrade();
                told = store.map(|store| show::show(&store, &pools, &directory));
            });
            shows.store(false, Ordering::Release);
            if let Some(told) = told {
                let _ = send(&watcher, frame, &told);
            }
        };
        // All signals are blocked here, and so there.
        let thread = thread::Builder::new().name("durum-show".to_owned());
        if thread.spawn(show).is_err() {
            self.shows.store(false, Ordering::Release);
        }
    }

    fn numbers(&self) -> Option<watching::Numbers> {
        let mut numbers = None;
        self.leaving.while_leaving(|| {
            let store = self.store.upgrade();
            #[cfg(test)]
            tests::pause();
            numbers = store.map(|store| numbers::of(&store, self.since));
        });
        numbers
    }
}

fn send(watcher: &Socket, frame: Frame, told: &Told) -> io::Result<()> {
    watcher.send(frame.answer(), &message::encode(told), &[])
}

/// Waits until somebody comes, or asks: whether somebody comes, and who asks.
fn wait(socket: &Socket, watchers: &[Socket]) -> io::Result<(bool, Vec<usize>)> {
    let all = std::iter::once(socket).chain(watchers);
    let all = all
        .map(Socket::descriptor)
        .collect::<io::Result<Vec<_>>>()?;
    let mut all: Vec<PollFd<'_>> = all
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    loop {
        match poll(&mut all, None) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        };
    }
    let mut happened = all.iter().map(PollFd::revents);
    let of_socket = happened.next().unwrap_or(PollFlags::HUP);
    if !(of_socket - PollFlags::IN).is_empty() {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let asking = happened
        .enumerate()
        .filter(|(_, happened)| !happened.is_empty());
    Ok((!of_socket.is_empty(), asking.map(|(at, _)| at).collect()))
}

/// Takes the next one who has come, if it is of this user, or root.
fn admit(socket: &Socket) -> io::Result<Option<Socket>> {
    let watcher = socket.accept()?;
    let peer = Peer::of(&watcher)?;
    watcher.wait_at_most(Some(PATIENCE), Some(PATIENCE))?;
    let own = rustix::process::geteuid().as_raw();
    Ok([0, own].contains(&peer.uid).then_some(watcher))
}
