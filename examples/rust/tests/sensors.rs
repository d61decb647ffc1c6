//! The network of sensors: nodes are killed again and again while they work, as is the home node while it takes in what
//! they have found, and what comes together is what plain vectors hold that nobody killed.

mod support;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use support::{Random, assert_comes_back, assert_nothing_is_lost};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sensors");

/// Where a node's processes run.
#[derive(Clone, Copy)]
enum Host {
    /// Beside all others.
    This,
    /// In namespaces of its own: it sees no network and no other process.
    Apart,
}

impl Host {
    /// What makes a host of its own, of which nothing is left when its first process is killed.
    const APART: [&str; 9] = [
        "--user",
        "--map-root-user",
        "--net",
        "--ipc",
        "--uts",
        "--pid",
        "--mount-proc",
        "--fork",
        "--kill-child",
    ];

    fn command(self, program: &str) -> Command {
        match self {
            Host::This => Command::new(program),
            Host::Apart => {
                let mut command = Command::new("unshare");
                command.args(Host::APART).arg(program);
                command
            }
        }
    }

    /// Why there is none apart from this one, if so.
    fn why_none_apart() -> Option<String> {
        match Host::Apart.command("true").output() {
            Ok(made) if made.status.success() => None,
            Ok(refused) => Some(String::from_utf8_lossy(&refused.stderr).trim().to_owned()),
            Err(error) => Some(format!("unshare: {error}")),
        }
    }
}

/// What a test does, and where.
struct Network {
    directory: tempfile::TempDir,
    nodes: u64,
    variables: u64,
    rounds: u64,
    host: Host,
    random: Random,
    /// Of those who had told something.
    kills_at_work: u64,
}

impl Network {
    fn new(nodes: u64, variables: u64, rounds: u64, host: Host) -> Network {
        Network {
            directory: tempfile::tempdir_in("/dev/shm").unwrap(),
            nodes,
            variables,
            rounds,
            host,
            random: Random(11),
            kills_at_work: 0,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn result(&self, node: u64) -> PathBuf {
        self.path(&format!("result-{node}"))
    }

    fn home(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg(self.path("home"));
        command
    }

    fn node(&self, node: u64) -> Command {
        let mut command = self.host.command(PROGRAM);
        command
            .arg(self.path(&format!("node-{node}")))
            .args(["work", &node.to_string(), &self.rounds.to_string()])
            .args([self.path("copy"), self.result(node)]);
        command
    }

    /// Runs what `command` gives until it ends by itself, and kills it at random moments until it was killed so often.
    /// One that `tells` what it does goes on until it has told something, every other time.
    fn run(
        &mut self,
        command: impl Fn(&Network) -> Command,
        kills: u64,
        within: Duration,
        tells: bool,
    ) {
        let mut killed = 0;
        loop {
            let mut child = command(self)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut told = 0;
            if killed < kills {
                if tells && killed % 2 == 1 {
                    told += child.stdout.as_mut().unwrap().read(&mut [0]).unwrap();
                }
                let moment = self.random.below(within.as_micros() as usize);
                std::thread::sleep(Duration::from_micros(moment as u64));
                child.kill().unwrap();
            }
            match ended(child) {
                None => {
                    killed += 1;
                    self.kills_at_work += u64::from(told > 0);
                }
                Some(output) => {
                    assert!(output.status.success(), "{output:?}");
                    break;
                }
            }
        }
    }

    /// Has the nodes do their work, each killed so often, and the home node take in what they have found.
    fn run_all(&mut self, kills: u64) {
        let variables = self.variables.to_string();
        let begin = |network: &Network| {
            let mut command = network.home();
            command
                .args(["begin", &variables])
                .arg(network.path("copy"));
            command
        };
        self.run(begin, kills, Duration::from_millis(5), false);
        for node in 1..=self.nodes {
            self.run(
                |network| network.node(node),
                kills,
                Duration::from_millis(5),
                true,
            );
        }
        let aggregate = |network: &Network| {
            let mut command = network.home();
            command.arg("aggregate");
            command.args((1..=network.nodes).map(|node| network.result(node)));
            command
        };
        let within = Duration::from_millis(self.nodes);
        self.run(aggregate, kills, within, false);
        let found = self.home().arg("read").output().unwrap();
        assert!(found.status.success(), "{found:?}");
        let found = String::from_utf8(found.stdout).unwrap();
        let expected = (1..=self.nodes).flat_map(|node| self.expected(node));
        similar_lines(&expected.collect::<Vec<_>>(), &found);
        assert_nothing_is_lost(&self.path("home"));
        assert_comes_back(&self.path("home"));
    }

    /// What a node's variables are after its work, that which changed last first.
    fn expected(&self, node: u64) -> Vec<String> {
        let mut list: Vec<(u64, u64, u64)> = (0..self.variables).map(|id| (id, 0, 0)).collect();
        for number in 3..3 * (self.rounds + 1) {
            let reading = ((node << 32) + number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
            let id = reading % self.variables;
            let place = list.iter().position(|variable| variable.0 == id).unwrap();
            let (_, _, changes) = list.remove(place);
            list.insert(0, (id, reading, changes + 1));
        }
        let line = |(id, value, changes)| format!("{node} {id} {value} {changes}");
        list.into_iter().map(line).collect()
    }
}

/// What a process said that ended by itself; `None` for one that was killed.
fn ended(child: Child) -> Option<Output> {
    let output = child.wait_with_output().unwrap();
    output.status.code().map(|_| output)
}

fn similar_lines(expected: &[String], found: &str) {
    for (number, (expected, found)) in expected.iter().zip(found.lines()).enumerate() {
        assert_eq!(expected, found, "line {number}");
    }
    assert_eq!(expected.len(), found.lines().count());
}

#[test]
fn what_killed_nodes_have_found_comes_together() {
    let mut network = Network::new(6, 100, 3000, Host::This);
    network.run_all(4);
    assert!(network.kills_at_work > 5, "{}", network.kills_at_work);
    // The results are where they were, and a second time changes nothing.
    assert!(Path::new(&network.result(1)).is_dir());
    network.run_all(0);
}

#[test]
fn a_result_with_a_flipped_bit_is_refused_and_the_network_can_be_made_without_it() {
    let mut network = Network::new(2, 30, 20, Host::This);
    network.run_all(0);
    fs::remove_dir_all(network.path("home")).unwrap();
    let manifest = fs::read_to_string(network.result(2).join("durum.export")).unwrap();
    let files = fs::read_dir(network.result(2)).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let puddle = files.find(|file| !file.ends_with("durum.export")).unwrap();
    assert!(manifest.contains(puddle.file_name().unwrap().to_str().unwrap()));
    let mut bytes = fs::read(&puddle).unwrap();
    bytes[1 << 20] ^= 1;
    fs::write(&puddle, bytes).unwrap();
    let both = (1..=2).map(|node| network.result(node));
    let refused = network.home().arg("aggregate").args(both).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("sum up to"),
        "{said}"
    );
    network.nodes = 1;
    network.run_all(0);
}

#[test]
#[ignore = "200 hosts with a network namespace each: a minute"]
fn two_hundred_hosts_come_together() {
    if let Some(reason) = Host::why_none_apart() {
        println!("skipped: no namespaces for this user: {reason}");
        return;
    }
    let mut network = Network::new(200, 400, 3000, Host::Apart);
    network.run_all(5);
    println!("{} kills of nodes at work", network.kills_at_work);
    assert!(network.kills_at_work > 200);
}
