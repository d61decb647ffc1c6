//! Counts the fences and write-backs that a batch really executes, by single-stepping it.
//!
//! durum's counters count what durum asked for. A peer has no counters, and a peer that flushes less than it promises
//! looks fast. So the processor is asked: a child process runs the batches, and its parent steps it from mark to mark,
//! instruction by instruction, and decodes those that matter.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

use crate::error::{Error, Result};

mod decode;

use decode::Effect;

/// What a batch executed, and what it counted itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Operations in the batch.
    pub ops: u64,
    /// All instructions.
    pub instructions: u64,
    /// Fences.
    pub fences: u64,
    /// CLWB.
    pub clwb: u64,
    /// CLFLUSHOPT and CLFLUSH.
    pub other_flushes: u64,
    /// Bytes written by non-temporal stores.
    pub streamed_bytes: u64,
    /// Fences that durum's counters counted.
    pub fences_counted: u64,
    /// Lines, written back or streamed, that durum's counters counted.
    pub lines_counted: u64,
}

impl Executed {
    /// Lines written back or streamed.
    pub fn lines(&self) -> u64 {
        self.clwb + self.other_flushes + self.streamed_bytes.div_ceil(64)
    }
}

/// The child's side: where batches begin and end.
#[derive(Debug)]
pub struct Marks {
    pipe: File,
}

impl Marks {
    /// The next instructions are the batch's.
    pub fn begin(&mut self) {
        // SAFETY: stops this process until its parent goes on.
        unsafe { libc::raise(libc::SIGSTOP) };
    }

    /// The batch is over; here is what was counted.
    pub fn end(&mut self, ops: u64, fences: u64, lines: u64) {
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGSTOP) };
        let record = [ops, fences, lines].map(u64::to_ne_bytes).concat();
        // The parent notices a record that is missing.
        let _ = self.pipe.write_all(&record);
    }
}

/// Runs `child` in a child process and steps it through the batches that it marks.
pub fn step(child: impl FnOnce(Marks) -> Result<()>) -> Result<Vec<Executed>> {
    let failed = || Error::file("single-stepping");
    let mut ends = [0; 2];
    // SAFETY: `ends` is valid for writes of two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(failed()(io::Error::last_os_error()));
    }
    // SAFETY: both descriptors are new and owned here.
    let (mut reader, writer) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    // SAFETY: this program has one thread, so that the child may go on as it likes.
    match unsafe { libc::fork() } {
        -1 => Err(failed()(io::Error::last_os_error())),
        0 => {
            drop(reader);
            // SAFETY: asks for nothing but to be traced by the parent.
            let result = match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
                0 => child(Marks { pipe: writer }),
                // Untraced, it must not stop at its first mark: nobody would wake it up.
                _ => Err(Error::file("PTRACE_TRACEME")(io::Error::last_os_error())),
            };
            if let Err(error) = &result {
                eprintln!("durum-bench: {error}");
            }
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(result.is_err())) }
        }
        child => {
            drop(writer);
            let mut batches = trace(child).map_err(failed())?;
            for batch in &mut batches {
                let mut record = [0; 24];
                reader.read_exact(&mut record).map_err(failed())?;
                let number = |place: usize| {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(&record[place * 8..][..8]);
                    u64::from_ne_bytes(bytes)
                };
                (batch.ops, batch.fences_counted, batch.lines_counted) =
                    (number(0), number(1), number(2));
            }
            Ok(batches)
        }
    }
}

/// Follows the child to its end.
fn trace(child: libc::pid_t) -> io::Result<Vec<Executed>> {
    let mut effects = HashMap::new();
    let mut batches = Vec::new();
    let mut running: Option<Executed> = None;
    loop {
        let status = wait(child)?;
        if libc::WIFEXITED(status) {
            let code = libc::WEXITSTATUS(status);
            return if code == 0 {
                Ok(batches)
            } else {
                Err(io::Error::other("the stepped process failed"))
            };
        }
        if !libc::WIFSTOPPED(status) {
            return Err(io::Error::other(format!(
                "the stepped process ended with status {status:#x}"
            )));
        }
        let mut signal = libc::WSTOPSIG(status);
        if signal == libc::SIGSTOP {
            signal = 0;
            match running.take() {
                Some(batch) => batches.push(batch),
                None => running = Some(Executed::default()),
            }
        } else if signal == libc::SIGTRAP {
            signal = 0;
        }
        if let Some(batch) = &mut running {
            let at = instruction_pointer(child)?;
            let effect = match effects.get(&at) {
                Some(effect) => *effect,
                None => *effects
                    .entry(at)
                    .or_insert(decode::effect(&code_at(child, at)?)),
            };
            batch.instructions += 1;
            match effect {
                Effect::None => {}
                Effect::Fence => batch.fences += 1,
                Effect::Clwb => batch.clwb += 1,
                Effect::OtherFlush => batch.other_flushes += 1,
                Effect::Stream(bytes) => batch.streamed_bytes += bytes,
            }
        }
        let how = if running.is_some() {
            libc::PTRACE_SINGLESTEP
        } else {
            libc::PTRACE_CONT
        };
        // SAFETY: the child is stopped; the call reads no memory of ours.
        if unsafe { libc::ptrace(how, child, 0, signal) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
}

fn wait(child: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: `status` is valid for writes.
    match unsafe { libc::waitpid(child, &raw mut status, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(status),
    }
}

fn instruction_pointer(child: libc::pid_t) -> io::Result<u64> {
    // SAFETY: all zero is valid for a struct of integers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the child is stopped; `registers` is valid for writes.
    if unsafe { libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(registers.rip)
}

fn code_at(child: libc::pid_t, at: u64) -> io::Result<[u8; 16]> {
    let mut code = [0; 16];
    for (place, word) in code.chunks_exact_mut(8).enumerate() {
        // SAFETY: the child is stopped; the call returns a word of its memory. At the end of a mapping the second word
        // cannot be read: then it is no long instruction that stands there.
        let value = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, child, at + place as u64 * 8, 0) };
        word.copy_from_slice(&value.to_ne_bytes());
    }
    Ok(code)
}
