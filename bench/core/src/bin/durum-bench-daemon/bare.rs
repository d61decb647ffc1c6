//! What a program has to do at least that asks another one: packets between two processes, a file that comes with one.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use durum_bench_core::error::{Error, Result};
use durum_bench_core::measure::stay_on;
use durum_protocol::Frame;
use durum_remote::socket::Socket;

use crate::{check, said};

/// Bytes of the file that comes: a puddle's.
pub(crate) const PUDDLE: usize = 2 << 20;

/// A process that answers packets, and one that answers each with a file.
pub(crate) struct Bare {
    echo: Answering,
    files: Answering,
    directory: std::path::PathBuf,
}

/// Our end, and the process at the other one.
struct Answering {
    socket: Socket,
    process: i32,
}

impl Drop for Answering {
    fn drop(&mut self) {
        // SAFETY: it is our child.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
        }
    }
}

/// Has a process answer, which runs `answer` for each packet that comes.
fn answering(mut answer: impl FnMut(&Socket, &[u8])) -> Result<Answering> {
    let (socket, there) = Socket::pair().map_err(said)?;
    // SAFETY: this process has one thread.
    let process = unsafe { libc::fork() };
    if process != 0 {
        return Ok(Answering { socket, process });
    }
    drop(socket);
    let fd = there.descriptor().map_or(-1, |fd| fd.as_fd().as_raw_fd());
    let mut packet = [0_u8; 256];
    loop {
        let mut ready = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: all pointers are valid for their lengths.
        let length = unsafe {
            libc::poll(&mut ready, 1, -1);
            libc::recv(fd, packet.as_mut_ptr().cast(), packet.len(), 0)
        };
        if length <= 0 {
            // SAFETY: ends the child without what the parent would do at its end.
            unsafe { libc::_exit(0) };
        }
        answer(&there, &packet[..length as usize]);
    }
}

impl Bare {
    /// Starts both; files lie in `directory`.
    pub(crate) fn start(directory: &Path) -> Result<Bare> {
        let directory = directory.join(format!("durum-bench-bare-{}", std::process::id()));
        let opened = directory.clone();
        let echo = answering(|socket, packet| {
            let fd = socket.descriptor().map_or(-1, |fd| fd.as_fd().as_raw_fd());
            // SAFETY: the packet is valid for its length.
            unsafe { libc::send(fd, packet.as_ptr().cast(), packet.len(), 0) };
        })?;
        let files = answering(move |socket, _| {
            let file = File::options().read(true).write(true).open(&opened);
            if let Ok(file) = file {
                let _ = socket.send(Frame::request(1), &[1], &[file.as_fd()]);
            }
        })?;
        std::fs::write(&directory, vec![7_u8; PUDDLE]).map_err(Error::file(&directory))?;
        Ok(Bare {
            echo,
            files,
            directory,
        })
    }

    /// Keeps both on a processor.
    pub(crate) fn stay_on(&self, processor: usize) {
        stay_on(self.echo.process, processor);
        stay_on(self.files.process, processor);
    }

    /// An empty round trip.
    pub(crate) fn round_trip(&self) -> Result<Duration> {
        let began = Instant::now();
        self.echo
            .socket
            .send(Frame::request(1), &[1], &[])
            .map_err(said)?;
        let received = self.echo.socket.receive(100, 0).map_err(said)?;
        let took = began.elapsed();
        check("empty request", true, received.is_some())?;
        Ok(took)
    }

    /// A file comes, is mapped, and its first byte is loaded.
    pub(crate) fn file_to_load(&self) -> Result<Duration> {
        let began = Instant::now();
        self.files
            .socket
            .send(Frame::request(1), &[1], &[])
            .map_err(said)?;
        let received = self.files.socket.receive(100, 1).map_err(said)?;
        let file = received.and_then(|mut received| received.files.pop());
        let mapped = file.as_ref().and_then(|file| Mapped::of(file, PUDDLE));
        let byte = mapped.as_ref().map(|mapped| mapped.load(0));
        let took = began.elapsed();
        check("puddle to first load", Some(7), byte)?;
        Ok(took)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.directory);
    }
}

/// A file that is mapped as puddles in memory are.
pub(crate) struct Mapped {
    at: *mut u8,
    size: usize,
}

impl Mapped {
    pub(crate) fn of(file: &impl AsFd, size: usize) -> Option<Mapped> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_fd().as_raw_fd();
        // SAFETY: a new mapping anywhere.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, fd, 0) };
        let at: *mut u8 = (at != libc::MAP_FAILED).then_some(at.cast())?;
        Some(Mapped { at, size })
    }

    pub(crate) fn load(&self, offset: usize) -> u8 {
        assert!(offset < self.size);
        // SAFETY: within the mapping.
        unsafe { self.at.add(offset).read_volatile() }
    }

    pub(crate) fn store(&self, offset: usize, value: u8) {
        assert!(offset < self.size);
        // SAFETY: within the mapping.
        unsafe { self.at.add(offset).write_volatile(value) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, and used no more.
        unsafe { libc::munmap(self.at.cast(), self.size) };
    }
}
