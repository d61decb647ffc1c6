//! Opens the store, listens, and ends in order.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use durum_protocol::address::MetricsAddress;
use durum_remote::answers::refused;
use durum_remote::peer::Peer;
use durum_remote::socket::Socket;
use durum_runner::Limits;
use durum_service::{CreateOptions, Error, Host, OpenOptions, Quota, Result};
use rustix::process::{Resource, Rlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clients::{Clients, system};
use crate::completions::Completions;
use crate::connections::Connections;
use crate::metrics::{Metrics, http};
use crate::options::Options;
use crate::quotas::{Limit, Tally};
use crate::service::Service;
use crate::session::Session;
use crate::showings::Showings;
use crate::socket_files::Made;
use crate::{config_check, runner, sandbox, sockets, watchdog};

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
        return config_check::check(options);
    }
    // Blocked before there are threads: the one that waits for signals gets them.
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|error| system("waiting for signals", error))?;
    raise_descriptors();
    // Of what is made from here on: nobody but the service opens files of the store.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    make_if_missing(&options.store)?;
    make_private(&options.store)?;
    let given = sockets::given()?;
    let at = options.metrics.as_deref().map(MetricsAddress::parse);
    let mut made = Vec::new();
    let shown = match &at {
        Some(address) => {
            let (listener, socket) = sockets::metrics(address)?;
            made.extend(socket);
            Some(listener)
        }
        None => given.metrics,
    };
    let mut own: Vec<PathBuf> = Vec::new();
    own.extend(given.clients.is_none().then(|| options.socket.clone()));
    own.extend(at.and_then(|address| address.path()));
    let runner = (!options.check_sandbox).then(|| runner::of(options));
    // From here on bytes are read that clients have written.
    match options.no_sandbox {
        true => tracing::warn!("no sandbox: all that this user may do is within reach"),
        false => sandbox::narrow(&options.store, &own),
    }
    let Some(runner) = runner else {
        return check_sandbox(&options.store);
    };
    let quotas = Limit::all(&options.quotas);
    let host = Host::open(
        &options.store,
        OpenOptions {
            is_service: true,
            quotas: quotas.clone(),
            ..OpenOptions::default()
        },
    )?;
    let metrics = Arc::new(Metrics::new());
    let limits = Limits::set(&options.code_limits);
    let completions = Completions::new(host.clone(), metrics.clone(), runner, limits);
    let clients = Clients::new(host.clone(), metrics.clone(), completions.clone())?;
    completions.look();
    let socket = match given.clients {
        Some(socket) => socket,
        None => {
            let (socket, file) = sockets::listen(&options.socket)?;
            made.push(file);
            socket
        }
    };
    let starting = |error| system("starting a thread", error);
    clients.watch().map_err(starting)?;
    let service = Arc::new(Service {
        host: host.clone(),
        clients: clients.clone(),
        completions: completions.clone(),
        showings: Showings::default(),
        metrics,
        users: options.users.clone(),
        clients_max: options.clients_max,
        connections: Connections::new(options.clients_max, quotas.clone()),
        quotas,
        requests: Tally::new(Quota::Requests),
        descriptors: Tally::new(Quota::Descriptors),
        is_shared: AtomicBool::new(false),
        is_draining: AtomicBool::new(false),
    });
    say_what_is_not_safe();
    if let Some(listener) = shown {
        let service = service.clone();
        http::serve(listener, move || service.shown()).map_err(starting)?;
    }
    watchdog::begin(host.clone(), clients.clone()).map_err(starting)?;
    let accepting = service.clone();
    thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || accept(&accepting, &socket))
        .map_err(starting)?;
    tracing::info!(store = %options.store.display(), socket = %options.socket.display(), "serving");
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    signals.forever().next();
    tracing::info!(
        clients = clients.counts().0,
        drain = options.drain,
        "ending"
    );
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    if options.drain {
        // Who holds it up can be seen and asked to leave meanwhile; nobody gets a pool.
        service.is_draining.store(true, Ordering::Relaxed);
        completions.end();
        while (clients.counts() != (0, 0) || !completions.are_done())
            && signals.pending().next().is_none()
        {
            thread::sleep(Duration::from_millis(50));
        }
    }
    // Nobody new comes.
    made.into_iter().for_each(Made::remove);
    completions.end();
    clients.end();
    host.close()
}

/// Makes the store where nothing is.
fn make_if_missing(path: &Path) -> Result<()> {
    match Host::create(path, &CreateOptions::default()) {
        // Whatever is there, opening it tells what it is.
        Err(Error::StoreExists { .. }) => Ok(()),
        made => made?.close(),
    }
}

/// Lets nobody else enter the directory: who could open a file by its path would have rights that no pool's mode gives.
fn make_private(path: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        refused(format!(
            "{}: others may enter the store's directory, and it cannot be made private ({error}); make it so (mode 0700), or \
             run the service as its owner",
            path.display()
        ))
    };
    // What is no store is told when it is opened, and not changed.
    let is_store = path.join(durum_format::store::FILE_NAME).exists();
    let mode = std::fs::metadata(path)
        .map_err(failed)?
        .permissions()
        .mode();
    if !is_store || mode & 0o077 == 0 {
        return Ok(());
    }
    tracing::info!(store = %path.display(), "the store's directory is made private (mode 0700)");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(failed)
}

/// Each client takes a few descriptors: as many may be open as the system allows.
fn raise_descriptors() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = rustix::process::setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

fn check_sandbox(store: &Path) -> Result<()> {
    let tried = sandbox::probe::all(store);
    for one in &tried {
        let outcome = if one.is_refused {
            "refused"
        } else {
            "POSSIBLE"
        };
        println!("{outcome}: {}", one.what);
    }
    match tried.iter().all(|one| one.is_refused) {
        true => Ok(()),
        false => Err(refused("the sandbox does not hold".to_owned())),
    }
}

fn say_what_is_not_safe() {
    let own = rustix::process::geteuid().as_raw();
    tracing::warn!(
        uid = own,
        "programs of the service's own user can open the store's files themselves: they are not kept apart"
    );
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
        let connected = Peer::of(&connection)
            .ok()
            .and_then(|peer| service.connections.enter(peer.uid));
        let Some(connected) = connected else {
            service.metrics.refused("crowd");
            tracing::warn!("a connection is refused: there are too many, of this user or of all");
            continue;
        };
        let answering = service.clone();
        let answer = move || {
            if let Err(error) = Session::begin(&answering, connection).and_then(Session::answer) {
                tracing::info!(%error, "a connection was ended");
            }
            drop(connected);
        };
        let begun = thread::Builder::new()
            .name("client".to_owned())
            .stack_size(STACK)
            .spawn(answer);
        if let Err(error) = begun {
            tracing::warn!(%error, "nobody can be let in now");
        }
    }
}
