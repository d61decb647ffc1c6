//! Userfaultfd: the kernel tells what becomes of pages of this process. Tracking of changed pages and mapping on demand
//! have a descriptor each. Documented in Linux: Documentation/admin-guide/mm/userfaultfd.rst.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::mm::{UserfaultfdFlags, userfaultfd};

/// include/uapi/linux/userfaultfd.h
mod uapi {
    pub(super) const UFFD_API: u64 = 0xaa;
    pub(super) const UFFD_USER_MODE_ONLY: u32 = 1;
    pub(super) const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    pub(super) const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
    pub(super) const UFFDIO_WAKE: libc::Ioctl = 0x8010_aa02_u32 as libc::Ioctl;
    pub(super) const UFFD_EVENT_PAGEFAULT: u8 = 0x12;

    #[repr(C)]
    pub(super) struct Api {
        pub(super) api: u64,
        pub(super) features: u64,
        pub(super) ioctls: u64,
    }

    #[repr(C)]
    pub(super) struct Extent {
        pub(super) start: u64,
        pub(super) len: u64,
    }

    #[repr(C)]
    pub(super) struct Register {
        pub(super) range: Extent,
        pub(super) mode: u64,
        pub(super) ioctls: u64,
    }

    /// Of a page fault.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    pub(super) struct Message {
        pub(super) event: u8,
        pub(super) reserved: [u8; 7],
        pub(super) flags: u64,
        pub(super) address: u64,
        pub(super) thread: u64,
    }

    const _: () = assert!(size_of::<Api>() == 24);
    const _: () = assert!(size_of::<Register>() == 32);
    const _: () = assert!(size_of::<Message>() == 32);
}

use uapi::{Api, Extent, Message, Register};

/// What a range is watched for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    /// Accesses to pages that are not there.
    Missing = 1 << 0,
    /// Writes to protected pages.
    WriteProtection = 1 << 1,
}

/// Whose accesses are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accesses {
    /// The program's own. Anybody may have such a descriptor.
    Program,
    /// Those of its system calls, too. It takes CAP_SYS_PTRACE, or `vm.unprivileged_userfaultfd`.
    ProgramAndKernel,
}

/// A descriptor. It is about the memory of the process that opened it.
#[derive(Debug)]
pub(crate) struct Userfaultfd(OwnedFd);

impl Userfaultfd {
    pub(crate) fn open(accesses: Accesses, features: u64) -> io::Result<Self> {
        let mut flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
        if accesses == Accesses::Program {
            flags |= UserfaultfdFlags::from_bits_retain(uapi::UFFD_USER_MODE_ONLY);
        }
        // SAFETY: ranges are registered by those who own them, and pages of others are left alone.
        let faults = unsafe { userfaultfd(flags) }?;
        let mut api = Api {
            api: uapi::UFFD_API,
            features,
            ioctls: 0,
        };
        ioctl(faults.as_raw_fd(), uapi::UFFDIO_API, &mut api)?;
        Ok(Self(faults))
    }

    /// Watches a mapped range.
    pub(crate) fn register(&self, range: &Range<usize>, mode: Mode) -> io::Result<()> {
        let mut register = Register {
            range: extent(range),
            mode: mode as u64,
            ioctls: 0,
        };
        ioctl(self.0.as_raw_fd(), uapi::UFFDIO_REGISTER, &mut register)?;
        Ok(())
    }

    /// Lets threads go on that were stopped at an access to a range, which may be mapped anew meanwhile.
    pub(crate) fn wake(&self, range: &Range<usize>) -> io::Result<()> {
        ioctl(self.0.as_raw_fd(), uapi::UFFDIO_WAKE, &mut extent(range)).map(drop)
    }

    /// Visits the address of each access that stopped a thread since the last time.
    pub(crate) fn stopped_at(&self, mut visit: impl FnMut(usize)) {
        let mut messages = [Message::default(); 16];
        loop {
            // SAFETY: messages are plain integers, and any bytes are valid for them.
            let bytes = unsafe {
                let len = size_of_val(&messages);
                std::slice::from_raw_parts_mut(messages.as_mut_ptr().cast::<u8>(), len)
            };
            let count = match rustix::io::read(&self.0, bytes) {
                Ok(0) => return,
                Ok(read) => read / size_of::<Message>(),
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            };
            for message in &messages[..count] {
                if message.event == uapi::UFFD_EVENT_PAGEFAULT {
                    visit(message.address as usize);
                }
            }
        }
    }
}

impl std::os::fd::AsFd for Userfaultfd {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn extent(range: &Range<usize>) -> Extent {
    Extent {
        start: range.start as u64,
        len: range.len() as u64,
    }
}

pub(crate) fn ioctl<T>(fd: RawFd, request: libc::Ioctl, argument: &mut T) -> io::Result<i32> {
    // SAFETY: each caller passes the struct that the request is defined with, whose pointers, if it has any, are valid.
    match unsafe { libc::ioctl(fd, request, std::ptr::from_mut(argument)) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
