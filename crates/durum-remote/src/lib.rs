//! A client of a store that another process serves: [`Remote`], which is a [`Service`](durum_service::Service) like an
//! embedded one. And the [sockets](socket) that it and the service use.

#![warn(clippy::unwrap_used)]

mod connection;
mod file;
pub mod peer;
mod remote;
pub mod socket;
mod told;
pub mod users;

pub use connection::Waiting;
pub use remote::Remote;
