//! The connection of a client.

use std::sync::Mutex;
use std::time::Instant;

use durum_protocol::{Frame, Note, message};
use durum_remote::socket::Socket;

/// The connection of a client.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) calls: Socket,
    pub(crate) bell: Socket,
    /// What it can do beside.
    pub(crate) features: u64,
    /// What it has asked and was not answered yet, and since when.
    pub(crate) asks: Mutex<Option<(String, Instant)>>,
}

impl Line {
    pub(super) fn tell(&self, note: &Note) -> bool {
        let message = message::encode(note);
        self.bell.send(Frame::note(), &message, &[]).is_ok()
    }

    pub(super) fn end(&self) {
        self.calls.shut_down();
        self.bell.shut_down();
    }
}
