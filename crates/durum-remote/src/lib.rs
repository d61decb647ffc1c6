//! A client of a store that another process serves: [`Remote`], which is a [`Service`](durum_service::Service) like an
//! embedded one. And the [sockets](socket) that it and the service use, and what each service does with a client that
//! comes by one: [`greeting`] and [`answers`]; to one that nobody believes, [`completing`]. [`run_directory`] and
//! [`watcher`] are of programs that observe themselves, [`http`] is of pages that show something.

#![warn(clippy::unwrap_used)]

pub mod answers;
pub mod completing;
mod connection;
mod file;
mod given;
pub mod greeting;
pub mod http;
pub mod peer;
mod remote;
pub mod run_directory;
pub mod socket;
mod told;
pub mod users;
pub mod watcher;

pub use connection::Waiting;
pub use given::Given;
pub use remote::Remote;
