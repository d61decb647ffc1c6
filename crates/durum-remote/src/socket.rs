//! `SOCK_SEQPACKET` sockets that carry messages and descriptors.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use durum_persist::own::OwnDescriptor;
use durum_protocol::frame::{FILES_MAX, Frame, PACKET_MAX, Parts};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

/// The bytes of descriptors beside a packet.
const BESIDE: usize = rustix::cmsg_space!(ScmRights(FILES_MAX));

/// One end of a connection.
#[derive(Debug)]
pub struct Socket {
    fd: OwnDescriptor,
}

/// A message that came.
#[derive(Debug)]
pub struct Received {
    /// What stood before its parts.
    pub frame: Frame,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The descriptors that came with it, in order.
    pub files: Vec<OwnedFd>,
}

impl Socket {
    /// Connects to a service.
    ///
    /// # Errors
    /// As the system says.
    pub fn connect(path: &Path) -> io::Result<Socket> {
        Socket::connect_within(path, None)
    }

    /// Connects to a service that takes the connection within this time: one that is stuck takes none once as many wait
    /// as may. Sending and receiving then wait as long.
    ///
    /// # Errors
    /// As the system says; `WouldBlock` after the time.
    pub fn connect_within(path: &Path, limit: Option<Duration>) -> io::Result<Socket> {
        let socket = Socket::new()?;
        socket.wait_at_most(limit, limit)?;
        rustix::net::connect(socket.fd.get()?, &SocketAddrUnix::new(path)?)?;
        Ok(socket)
    }

    /// Makes a socket in the file system that others connect to. The name must not exist.
    ///
    /// # Errors
    /// As the system says.
    pub fn listen(path: &Path) -> io::Result<Socket> {
        let socket = Socket::new()?;
        rustix::net::bind(socket.fd.get()?, &SocketAddrUnix::new(path)?)?;
        rustix::net::listen(socket.fd.get()?, 1024)?;
        Ok(socket)
    }

    /// Two ends that are connected to each other.
    ///
    /// # Errors
    /// As the system says.
    pub fn pair() -> io::Result<(Socket, Socket)> {
        let (one, other) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Socket::over(one)?, Socket::over(other)?))
    }

    fn new() -> io::Result<Socket> {
        let fd = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Socket::over(fd)
    }

    /// A socket that was made elsewhere.
    ///
    /// # Errors
    /// As the system says.
    pub fn over(fd: OwnedFd) -> io::Result<Socket> {
        Ok(Socket {
            fd: OwnDescriptor::new(fd)?,
        })
    }

    /// Its descriptor.
    ///
    /// # Errors
    /// `NotConnected` where the program has closed it.
    pub fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        self.fd.get()
    }

    /// Waits for somebody who connects.
    ///
    /// # Errors
    /// As the system says.
    pub fn accept(&self) -> io::Result<Socket> {
        Socket::over(rustix::net::accept_with(
            self.fd.get()?,
            SocketFlags::CLOEXEC,
        )?)
    }

    /// How long sending and receiving wait; for ever at first.
    ///
    /// # Errors
    /// As the system says.
    pub fn wait_at_most(
        &self,
        send: Option<Duration>,
        receive: Option<Duration>,
    ) -> io::Result<()> {
        let fd = self.fd.get()?;
        sockopt::set_socket_timeout(fd, Timeout::Send, send)?;
        Ok(sockopt::set_socket_timeout(fd, Timeout::Recv, receive)?)
    }

    /// Whether the other end has not taken all that was sent. It says yes where the system does not tell.
    pub fn has_unread(&self) -> bool {
        let Ok(fd) = self.fd.get() else {
            return false;
        };
        let mut bytes: libc::c_int = 0;
        // SAFETY: the pointer is to a local that outlives the call.
        let failed = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
        failed != 0 || bytes > 0
    }

    /// Waits a moment for something to come, without sleeping: to wake a thread on a processor that sleeps takes longer
    /// than most answers. Whoever else wants the processor gets it.
    pub fn look(&self) {
        const LOOKS: usize = 50;
        let Ok(fd) = self.fd.get() else {
            return;
        };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let at_once = Timespec::default();
        for _ in 0..LOOKS {
            match poll(&mut fds, Some(&at_once)) {
                Ok(0) => rustix::thread::sched_yield(),
                _ => return,
            }
        }
    }

    /// Ends the connection for both, also for one who waits for a message.
    pub fn shut_down(&self) {
        if let Ok(fd) = self.fd.get() {
            let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Both);
        }
    }

    /// Sends a message, with descriptors beside it, as many with each packet as fit.
    ///
    /// # Errors
    /// As the system says; the connection is of no use then.
    pub fn send(&self, frame: Frame, message: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut files = files;
        let mut packets = frame.packets(message, files.len()).peekable();
        while let Some(packet) = packets.next() {
            // Those that do not fit beside the last packet cannot be sent.
            let now = files.len().min(FILES_MAX);
            let (with, later) = files.split_at(now);
            if packets.peek().is_none() && !later.is_empty() {
                return Err(io::Error::other("more descriptors than packets can carry"));
            }
            self.send_packet(&packet, with)?;
            files = later;
        }
        Ok(())
    }

    fn send_packet(&self, packet: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); BESIDE];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            beside.push(SendAncillaryMessage::ScmRights(files));
        }
        let parts = [io::IoSlice::new(packet)];
        // Sends all of it or nothing.
        let fd = self.fd.get()?;
        retry(|| rustix::net::sendmsg(fd, &parts, &mut beside, SendFlags::NOSIGNAL)).map(drop)
    }

    /// Waits for a message of at most so many bytes and descriptors; `None` when the other end has closed.
    ///
    /// # Errors
    /// As the system says; `InvalidData` for what is no message. The connection is of no use then.
    pub fn receive(&self, bytes_max: usize, files_max: usize) -> io::Result<Option<Received>> {
        self.receive_parts(bytes_max, files_max, usize::MAX)
    }

    /// The same for a message that is short enough to come in one packet: nobody keeps the caller waiting by one part
    /// after the other.
    ///
    /// # Errors
    /// As for [`Socket::receive`].
    pub fn receive_short(
        &self,
        bytes_max: usize,
        files_max: usize,
    ) -> io::Result<Option<Received>> {
        self.receive_parts(bytes_max, files_max, 1)
    }

    fn receive_parts(
        &self,
        bytes_max: usize,
        files_max: usize,
        parts_max: usize,
    ) -> io::Result<Option<Received>> {
        let mut parts = Parts::new(bytes_max);
        let mut files = Vec::new();
        let mut buffer = vec![0; PACKET_MAX];
        for _ in 0..parts_max {
            let Some(length) = self.receive_packet(&mut buffer, &mut files)? else {
                return Ok(None);
            };
            if files.len() > files_max {
                return Err(invalid("more descriptors than were asked for"));
            }
            let packet = buffer.get(..length).unwrap_or_default();
            let message = parts.add(packet).map_err(invalid)?;
            if let Some((frame, bytes)) = message {
                return Ok(Some(Received {
                    frame,
                    bytes,
                    files,
                }));
            }
        }
        Err(invalid("a short message in several packets"))
    }

    fn receive_packet(
        &self,
        buffer: &mut [u8],
        files: &mut Vec<OwnedFd>,
    ) -> io::Result<Option<usize>> {
        let mut space = [MaybeUninit::uninit(); BESIDE];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [io::IoSliceMut::new(buffer)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let fd = self.fd.get()?;
        let came = retry(|| rustix::net::recvmsg(fd, &mut parts, &mut beside, flags))?;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(came) = message {
                files.extend(came);
            }
        }
        use rustix::net::ReturnFlags;
        if came
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
        {
            return Err(invalid("a packet that is longer than may be"));
        }
        // No packet of ours is empty.
        Ok((came.bytes != 0).then_some(came.bytes))
    }
}

fn invalid(problem: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.to_string())
}

/// Calls again what a signal has interrupted.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}
