//! What the service tells systemd: that it is ready, and that it is well, as long as it is.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use durum_format::types::type_id;
use durum_remote::{Remote, Waiting};
use durum_service::Service;

use crate::support::{Served, until};

/// Stands for systemd: hears what a service tells.
fn supervised(watchdog: Duration) -> (Served, UnixDatagram) {
    let served = Served::prepare(Path::new("/dev/shm"));
    let path = served.beside("notify");
    let hears = UnixDatagram::bind(&path).unwrap();
    hears.set_read_timeout(Some(watchdog)).unwrap();
    let mut served = served
        .with_variable("NOTIFY_SOCKET", path.to_str().unwrap())
        .with_variable("WATCHDOG_USEC", &watchdog.as_micros().to_string());
    served.start_again();
    (served, hears)
}

fn heard(hears: &UnixDatagram) -> Option<String> {
    let mut buffer = [0; 256];
    let length = hears.recv(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(&buffer[..length]).trim().to_owned())
}

#[test]
fn a_service_that_is_well_is_ready_feeds_the_watchdog_and_says_that_it_ends() {
    let (mut served, hears) = supervised(Duration::from_secs(3));
    let mut told: Vec<String> = (0..4).map(|_| heard(&hears).unwrap()).collect();
    told.sort();
    assert_eq!(told, ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]);
    served.end();
    let told: Vec<String> = std::iter::from_fn(|| heard(&hears)).collect();
    assert!(told.contains(&"STOPPING=1".to_owned()), "{told:?}");
}

const TYPE: &str = "u64\n";

/// Has each write of the service take a minute, as on a disk that hangs.
fn hang(served: &Served) -> Option<Child> {
    let mut strace = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=pwrite64,pwritev,write,fdatasync,fsync,msync",
        ])
        .args([
            "-e",
            "inject=pwrite64,pwritev,fdatasync,fsync,msync:delay_enter=60000000",
        ])
        .args(["-o", "/dev/null", "-p", &served.pid().to_string()])
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let status = format!("/proc/{}/status", served.pid());
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(10));
        if strace.try_wait().ok()?.is_some() {
            return None;
        }
        let status = std::fs::read_to_string(&status).ok()?;
        if !status.contains("TracerPid:\t0\n") {
            return Some(strace);
        }
    }
    None
}

#[test]
fn a_service_whose_changes_hang_does_not_feed_the_watchdog() {
    let (served, hears) = supervised(Duration::from_secs(2));
    let waiting = Waiting {
        answer: Duration::from_secs(1),
        service: Duration::from_secs(1),
    };
    let remote = Remote::open(&served.socket(), waiting).unwrap();
    let Some(mut strace) = hang(&served) else {
        return eprintln!("skipped: no strace here, or it may not look at other processes");
    };
    // A commit of the registry, and nothing beside.
    let asks = std::thread::spawn(move || remote.register_type(type_id(TYPE), TYPE));
    until("the log says that it hangs", || {
        served.log().contains("hangs")
    });
    while heard(&hears).is_some() {}
    // Nothing came for as long as the watchdog waits.
    assert!(heard(&hears).is_none());
    let _ = strace.kill();
    let _ = strace.wait();
    drop(asks.join());
}
