//! Programs that share a store by `durumd`. Each client is a process of its own: this binary, started again with a
//! [`part`](parts) to play.

mod campaign;
mod costs;
mod killer;
mod lives;
mod parts;
mod steps;
mod strangers;
mod support;
