//! The small subcommands, one file each; `state` is what several of them tell of pools.

pub(crate) mod check;
pub(crate) mod clients;
pub(crate) mod clone;
mod complete;
pub(crate) mod completions;
pub(crate) mod dump;
pub(crate) mod gc;
pub(crate) mod init;
pub(crate) mod ls;
pub(crate) mod migrate;
pub(crate) mod recover;
pub(crate) mod rights;
pub(crate) mod rm;
pub(crate) mod ship;
pub(crate) mod stat;
pub(crate) mod state;
