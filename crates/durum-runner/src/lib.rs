//! Runs code that nobody believes: a static executable that somebody has left in a store, to complete what a crash has
//! interrupted (docs/internals/resumption.md).
//!
//! The code gets a socket, and nothing else: no file, no network, no process but its own, no memory that it could
//! execute, and of processor time, memory and time in all what it is allowed.
//!
//! ```text
//! caller   Code::copied: its hash is compared, nobody writes it any more | Bounds::of_this_kernel
//!          Running::start ---> child: limits, Landlock, system calls | executes the code
//!          Running::wait  <--- its end; or it takes too long, and is killed
//! ```
//!
//! Reading order, in which each module imports only those before it: [`code`] (what is run), [`limits`] (how much it
//! may take), `calls` and [`bounds`] (what it may do), `child` (what happens between the fork and its first
//! instruction), [`running`] (how it ends), [`runner`] and [`apart`] (which process runs it), [`keeper`] (what
//! becomes of that one when it is killed).

#![warn(clippy::unwrap_used)]

pub mod apart;
pub mod bounds;
mod calls;
mod child;
pub mod code;
pub mod keeper;
pub mod limits;
pub mod runner;
pub mod running;

pub use apart::{Apart, is_for_now};
pub use bounds::Bounds;
pub use code::{Code, CodeError, Hash};
pub use limits::Limits;
pub use runner::{Here, Runner};
pub use running::{Ended, Running};
