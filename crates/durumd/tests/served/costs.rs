//! What asking the service costs, beside a bare program that does the same. Times: run by hand, on a quiet machine.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use durum_protocol::Frame;
use durum_remote::socket::Socket;
use durum_remote::{Remote, Waiting};
use durum_service::{EngineKind, PoolSpec, PuddleKind, PuddleOwner, Service};

use crate::support::Served;

fn median(rounds: usize, mut round: impl FnMut()) -> Duration {
    let mut took: Vec<Duration> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            round();
            began.elapsed()
        })
        .collect();
    took.sort();
    took[rounds / 2]
}

/// An empty round trip of packets between two processes, with a poll at the one that answers.
fn bare() -> Duration {
    let (here, there) = Socket::pair().unwrap();
    let frame = Frame::request(1);
    // SAFETY: the child answers and ends, without anything that another thread of the parent may hold.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut packet = [0_u8; 64];
        loop {
            let mut ready = libc::pollfd {
                fd: std::os::fd::AsRawFd::as_raw_fd(&there.descriptor().unwrap().as_fd()),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: all pointers are valid for their lengths.
            unsafe {
                libc::poll(&mut ready, 1, -1);
                let length = libc::recv(ready.fd, packet.as_mut_ptr().cast(), packet.len(), 0);
                if length <= 0 {
                    libc::_exit(0);
                }
                libc::send(ready.fd, packet.as_ptr().cast(), length as usize, 0);
            }
        }
    }
    drop(there);
    let took = median(20_000, || {
        here.send(frame, &[1], &[]).unwrap();
        here.receive(100, 0).unwrap().unwrap();
    });
    // SAFETY: it is our child.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    took
}

#[test]
#[ignore = "times, which need a quiet machine"]
fn requests_against_a_bare_program() {
    let bare = bare();
    let served = Served::start();
    let remote = Remote::open(&served.socket(), Waiting::default()).unwrap();
    let pool = remote
        .create_pool("pool", &PoolSpec::new(EngineKind::Shadow))
        .unwrap();
    let text = median(20_000, || drop(remote.type_text(1).unwrap()));
    remote.close_pool(pool.uuid).unwrap();
    drop(pool);
    let open = median(500, || {
        let pool = remote.open_pool("pool").unwrap();
        remote.close_pool(pool.uuid).unwrap();
    });
    let pool = remote.open_pool("pool").unwrap();
    let puddle = median(100, || {
        let owner = PuddleOwner::Pool(pool.uuid);
        let made = remote
            .create_puddle(owner, PuddleKind::Data, 2 << 20)
            .unwrap();
        std::hint::black_box(made);
    });
    let ratio = text.as_secs_f64() / bare.as_secs_f64();
    println!(
        "bare round trip {bare:?}; a type's text {text:?}, {ratio:.2} times; open and close a pool {open:?}"
    );
    println!("a new puddle {puddle:?}");
    remote.close().unwrap();
}
