//! A service that a test starts, kills and starts again, and clients in processes of their own.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use durum_remote::Remote;
use durum_service::Service;

use crate::killer::Killer;

/// The variables by which a client is told what to do.
pub const PART: &str = "DURUM_TEST_PART";
pub const STORE: &str = "DURUM_TEST_STORE";
pub const ENGINE: &str = "DURUM_TEST_ENGINE_OF_POOL";
/// As which user, and in which groups: numbers with commas between them.
pub const USER: &str = "DURUM_TEST_USER";

pub const BINARY: &str = env!("CARGO_BIN_EXE_durumd");

/// A store, and the service that is started for it.
pub struct Served {
    directory: tempfile::TempDir,
    service: Option<Child>,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Served {
    pub fn start() -> Served {
        Served::start_in(Path::new("/dev/shm"))
    }

    pub fn start_in(place: &Path) -> Served {
        let mut served = Served::prepare(place);
        served.start_again();
        served
    }

    /// Started with more arguments; programs of all users may connect.
    pub fn start_with(arguments: &[&str]) -> Served {
        let mut served = Served::prepare(Path::new("/dev/shm")).with(arguments);
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(served.directory.path(), open).unwrap();
        served.start_again();
        served
    }

    /// Nothing is started yet.
    pub fn prepare(place: &Path) -> Served {
        Served {
            directory: tempfile::tempdir_in(place).unwrap(),
            service: None,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// The service gets these arguments, too.
    pub fn with(mut self, arguments: &[&str]) -> Served {
        self.arguments
            .extend(arguments.iter().map(|argument| argument.to_string()));
        self
    }

    /// The service gets this variable.
    pub fn with_variable(mut self, name: &'static str, value: &str) -> Served {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// A path beside the store.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("sock")
    }

    pub fn address(&self) -> String {
        format!("durum+unix:{}", self.socket().display())
    }

    pub fn start_again(&mut self) {
        let mut command = Command::new(BINARY);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        self.start_by(&mut command);
    }

    /// Starts the service by a command that begins it.
    pub fn start_by(&mut self, command: &mut Command) {
        self.service = Some(spawn(command, self.directory.path()));
        listens(&self.socket());
    }

    /// Does something while the service is killed before its step of a number, and started again at once. Tells how
    /// many steps it began, if it was not killed: then it ends in order, and is started again, too.
    pub fn killed_before(&mut self, number: u64, what: impl FnOnce()) -> Option<u64> {
        let service = self.service.take().unwrap();
        let killer = Killer::before_step(number, service.id());
        self.follow(service, killer, what)
    }

    /// Starts the service, which is killed before its step of a number, if it begins so many until it listens.
    pub fn killed_at_its_start(&mut self, number: u64) -> Option<u64> {
        let mut held_back = Command::new("sh");
        held_back.args(["-c", "kill -STOP $$; exec \"$0\" \"$@\""]);
        let service = spawn(held_back.arg(BINARY), self.directory.path());
        let stat = format!("/proc/{}/stat", service.id());
        until("it waits", || {
            std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))
        });
        let killer = Killer::before_step(number, service.id());
        let socket = self.socket();
        self.follow(service, killer, || listens(&socket))
    }

    /// The process of the service.
    pub fn pid(&self) -> u32 {
        self.service.as_ref().unwrap().id()
    }

    fn follow(&mut self, mut service: Child, killer: Killer, what: impl FnOnce()) -> Option<u64> {
        let pid = service.id() as i32;
        let place = self.directory.path().to_owned();
        let Killer { aim, follows } = killer;
        let starts_again = std::thread::spawn(move || {
            // First: whoever waits for a process that another thread follows takes its stops away.
            follows.join().unwrap();
            // That thread has waited for its end, too.
            let _ = service.wait();
            let service = spawn(&mut Command::new(BINARY), &place);
            listens(&place.join("sock"));
            service
        });
        what();
        let steps = aim.disarm();
        if steps.is_some() {
            // SAFETY: the process is a child of the test; it ends for no other reason.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        self.service = Some(starts_again.join().unwrap());
        steps
    }

    /// Sends a signal to the service.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the process is ours, and not waited for yet.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    pub fn kill(&mut self) {
        let mut service = self.service.take().unwrap();
        service.kill().unwrap();
        service.wait().unwrap();
    }

    /// Ends the service in order, and tells how long that took.
    pub fn end(&mut self) -> Duration {
        let mut service = self.service.take().unwrap();
        let began = Instant::now();
        // SAFETY: the process is ours, and not waited for yet.
        assert_eq!(unsafe { libc::kill(service.id() as i32, libc::SIGTERM) }, 0);
        assert!(service.wait().unwrap().success(), "{}", self.log());
        began.elapsed()
    }

    /// Waits until the service has ended in order.
    pub fn ends(&mut self) {
        let mut service = self.service.take().unwrap();
        assert!(service.wait().unwrap().success(), "{}", self.log());
    }

    /// Leaves the pool of a writer in quarantine: the writer is killed in a transaction, and logs are damaged before.
    pub fn quarantine(&self, mut writer: Client) {
        assert_eq!(writer.ask("half"), "half");
        for entry in std::fs::read_dir(self.store().join("puddles")).unwrap() {
            let path = entry.unwrap().path();
            let file = File::options().read(true).write(true).open(path).unwrap();
            let mut magic = [0; 8];
            if file.read_exact_at(&mut magic, 4096).is_ok() && magic == *b"DURUMLOG" {
                file.write_all_at(b"DAMAGED!", 4096).unwrap();
            }
        }
        writer.kill();
        let remote = Remote::open(&self.socket(), Default::default()).unwrap();
        until("a pool is in quarantine", || {
            let pools = remote.pools().unwrap();
            pools.iter().any(|pool| pool.quarantine.is_some())
        });
        remote.close().unwrap();
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// A client in a process of its own.
    pub fn client(&self, part: &str) -> Client {
        self.client_on(part, "shadow")
    }

    pub fn client_on(&self, part: &str, engine: &str) -> Client {
        self.start_client(&std::env::current_exe().unwrap(), part, engine, "")
    }

    /// Another client than `parts::client`, of a user. What it says to its log can be asked for.
    pub fn start_program(&self, test: &str, user: &str, engine: &str) -> Client {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([test, "--exact", "--nocapture", "--ignored"])
            .stderr(Stdio::piped());
        self.begin(&mut command, user, engine, user)
    }

    /// A client of a user, that is another program of the same text.
    pub fn client_from(&self, program: &Path, user: &str) -> Client {
        self.start_client(program, user, "shadow", user)
    }

    /// A client of a user, on an engine.
    pub fn client_of_on(&self, user: &str, engine: &str) -> Client {
        self.start_client(&std::env::current_exe().unwrap(), user, engine, user)
    }

    /// A client of a user: its number, that of its group, and those of more groups.
    pub fn client_of(&self, user: &str) -> Client {
        self.client_from(&std::env::current_exe().unwrap(), user)
    }

    fn start_client(&self, program: &Path, part: &str, engine: &str, user: &str) -> Client {
        let mut command = Command::new(program);
        command.args(["parts::client", "--exact", "--nocapture", "--ignored"]);
        self.begin(&mut command, part, engine, user)
    }

    fn begin(&self, command: &mut Command, part: &str, engine: &str, user: &str) -> Client {
        command
            .env(PART, part)
            .env(STORE, self.address())
            .env(ENGINE, engine)
            .env(USER, user)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = loop {
            match command.spawn() {
                // It was just copied, and a process that another test was starting then has it open for writing.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    std::thread::yield_now();
                }
                process => break process.unwrap(),
            }
        };
        let (told, says) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        Client {
            process,
            told: Some(told),
            says: BufReader::new(says),
        }
    }
}

/// Starts the service of a place by a command.
fn spawn(command: &mut Command, place: &Path) -> Child {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(place.join("log"));
    command
        .arg("--store")
        .arg(place.join("store"))
        .arg("--socket")
        .arg(place.join("sock"))
        .stderr(log.unwrap())
        .spawn()
        .unwrap()
}

fn listens(socket: &Path) {
    until("the service listens", || {
        durum_remote::socket::Socket::connect(socket).is_ok()
    });
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut service) = self.service.take() {
            let _ = service.kill();
            let _ = service.wait();
        }
        if std::thread::panicking() {
            eprintln!("-- the service's log\n{}", self.log());
        }
    }
}

/// A client in a process of its own: it is told a line, and says one.
pub struct Client {
    pub process: Child,
    told: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
}

impl Client {
    /// What it says next: lines of the test harness do not count.
    pub fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            let length = self.says.read_line(&mut line).unwrap();
            assert_ne!(length, 0, "the client has ended");
            if let Some(said) = line.trim_end().split("client: ").nth(1) {
                return said.to_owned();
            }
        }
    }

    /// What it has said last that nobody has heard, after its end.
    pub fn last_words(&mut self) -> Option<String> {
        let lines = self.says.by_ref().lines().map_while(Result::ok);
        lines
            .filter_map(|line| line.split("client: ").nth(1).map(str::to_owned))
            .last()
    }

    pub fn expect(&mut self, said: &str) {
        assert_eq!(self.hear(), said);
    }

    pub fn tell(&mut self, line: &str) {
        let told = self.told.as_mut().unwrap();
        writeln!(told, "{line}").unwrap();
        told.flush().unwrap();
    }

    /// Tells a line, and gives what is said about it.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hear()
    }

    /// What it has said to its log, once it has ended, if it was started with one.
    pub fn log(&mut self) -> String {
        let mut log = String::new();
        let said = self.process.stderr.take().unwrap().read_to_string(&mut log);
        said.unwrap();
        log
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Lets it end by itself.
    pub fn end(mut self) {
        drop(self.told.take());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Waits for something that has to happen.
pub fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let began = Instant::now();
    while !happens() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "this does not happen: {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}
