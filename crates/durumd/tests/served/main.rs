//! Programs that share a store by `durumd`. Each client is a process of its own: this binary, started again with a
//! [`part`](parts) to play.

mod activation;
mod audit;
mod campaign;
mod commands;
mod completions;
mod copies;
mod events;
mod forms;
mod hostile_code;
mod killer;
mod lives;
mod metrics;
mod older;
mod parts;
mod readers;
mod retyping;
mod sandbox;
mod sections;
mod shipping;
mod showing;
mod sockets;
mod steps;
mod strangers;
mod stuck;
mod support;
mod users;
mod watchdog;
