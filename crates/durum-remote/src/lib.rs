//! A client of a store that another process serves: [`Remote`], which is a [`Service`](durum_service::Service) like an
//! embedded one. And the [sockets](socket) that it and the service use, and what each service does with a client that
//! comes by one: [`greeting`] and [`answers`].

#![warn(clippy::unwrap_used)]

pub mod answers;
mod connection;
mod file;
pub mod greeting;
pub mod peer;
mod remote;
pub mod socket;
mod told;
pub mod users;

pub use connection::Waiting;
pub use remote::Remote;
