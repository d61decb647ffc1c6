//! Opens the store, listens, and ends in order.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use durum_remote::socket::Socket;
use durum_service::{CreateOptions, Error, Host, OpenOptions, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clients::{Clients, system};
use crate::options::Options;
use crate::service::{Service, refused};
use crate::session::Session;

/// How many connections may wait to greet, beside those of clients.
const STRANGERS_MAX: usize = 256;

/// The stack of a thread that answers a client.
const STACK: usize = 512 << 10;

/// Serves until a signal ends it.
///
/// # Errors
/// Those of the store and the socket.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.store.to_str().is_none() {
        return Err(refused(format!(
            "{}: the path of a store that is served has to be UTF-8",
            options.store.display()
        )));
    }
    if options.check_config {
        durum_service::ReadOnlyStore::open(&options.store)?;
        println!(
            "{}: can be served at {}",
            options.store.display(),
            options.socket.display()
        );
        return Ok(());
    }
    // Blocked before there are threads: the one that waits for signals gets them.
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|error| system("waiting for signals", error))?;
    let host = open(&options.store)?;
    let clients = Clients::new(host.clone())?;
    let (socket, is_own) = listen(&options.socket)?;
    clients
        .watch()
        .map_err(|error| system("starting a thread", error))?;
    let service = Arc::new(Service {
        host: host.clone(),
        clients: clients.clone(),
        users: options.users.clone(),
        clients_max: options.clients_max,
        clients_per_user: options.clients_per_user,
        connections: AtomicUsize::new(0),
    });
    say_what_is_not_safe(&service);
    let accepting = service.clone();
    thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || accept(&accepting, &socket))
        .map_err(|error| system("starting a thread", error))?;
    tracing::info!(store = %options.store.display(), socket = %options.socket.display(), "serving");
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    signals.forever().next();
    tracing::info!(clients = clients.count(), drain = options.drain, "ending");
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    if is_own {
        // Nobody new comes.
        let _ = std::fs::remove_file(&options.socket);
    }
    if options.drain {
        while clients.count() > 0 && signals.pending().next().is_none() {
            thread::sleep(Duration::from_millis(50));
        }
    }
    clients.end();
    host.close()
}

/// Opens the store, or makes it where nothing is.
fn open(path: &Path) -> Result<Arc<Host>> {
    let open = OpenOptions {
        is_service: true,
        ..OpenOptions::default()
    };
    match Host::open(path, open.clone()) {
        Err(Error::StoreMissing {
            can_be_made: true, ..
        }) => {
            // Nobody but the service opens its files.
            Host::create(path, &CreateOptions::default())?.close()?;
            let private = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(path, private)
                .map_err(|error| system("making the store private", error))?;
            Host::open(path, open)
        }
        opened => opened,
    }
}

/// The socket that the system gave, or one that is made. Tells whether it is our own.
fn listen(path: &Path) -> Result<(Socket, bool)> {
    let failed = |source| Error::Io {
        operation: "listening",
        path: path.to_owned(),
        offset: None,
        source,
    };
    let mut given = sd_notify::listen_fds().map_err(failed)?;
    if let Some(fd) = given.next() {
        // SAFETY: the system opened it for this process, and nobody else here uses it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        return Ok((Socket::over(fd).map_err(failed)?, false));
    }
    match Socket::listen(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            // What a service left that was killed: the lock of the store says that there is no other one. One of
            // another store is listening.
            match Socket::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                _ => return Err(failed(error)),
            }
            std::fs::remove_file(path).map_err(failed)?;
            Socket::listen(path).map_err(failed)
        }
        made => made.map_err(failed),
    }
    .and_then(|socket| {
        // Rights are checked for each connection.
        let open = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(path, open).map_err(failed)?;
        Ok((socket, true))
    })
}

fn say_what_is_not_safe(service: &Service) {
    let own = rustix::process::geteuid().as_raw();
    tracing::warn!(
        uid = own,
        "programs of the service's own user can open the store's files themselves: they are not kept apart"
    );
    if !service.users.is_empty() {
        tracing::warn!(users = ?service.users, "these users may open each pool: pools have no owners yet");
    }
}

fn accept(service: &Arc<Service>, socket: &Socket) {
    loop {
        let connection = match socket.accept() {
            Ok(connection) => connection,
            Err(error) => {
                // Out of descriptors, mostly: others go on, and give some back.
                tracing::warn!(%error, "nobody can be let in now");
                thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        let most = service.clients_max + STRANGERS_MAX;
        if service.connections.fetch_add(1, Ordering::Relaxed) >= most {
            service.connections.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(most, "a connection is refused: there are too many");
            continue;
        }
        let answering = service.clone();
        let answer = move || {
            if let Err(error) = Session::begin(&answering, connection).and_then(Session::answer) {
                tracing::info!(%error, "a connection was ended");
            }
            answering.connections.fetch_sub(1, Ordering::Relaxed);
        };
        let begun = thread::Builder::new()
            .name("client".to_owned())
            .stack_size(STACK)
            .spawn(answer);
        if let Err(error) = begun {
            service.connections.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(%error, "nobody can be let in now");
        }
    }
}
