//! What durum keeps on the media.
//!
//! Every layout, with its validation, as functions over bytes and addresses: no I/O, no threads, no panic on any input.
//! The pages of `docs/format` tell each layout byte by byte; the modules here hold the structs, assert at compile time
//! that they match, and turn bytes into types that only validation makes.
//!
//! A reading order: [`consts`], [`puddle`], [`extent`] (the heap), [`log`] (what commits and what recovery does),
//! [`log_space`], [`record`] (the same for engines that write redo records), [`section`] (for code that a crash
//! interrupts and that goes on), [`types`] (descriptors), [`content`] (what objects mean
//! by them), [`registry`] and [`store`] (the text files of a store),
//! [`catalog`] (what came before the registry).
//!
//! ```
//! use durum_format::puddle::{self, PuddleHeader, PuddleKind};
//! use durum_format::{Uuid, consts};
//!
//! let header = PuddleHeader {
//!     kind: PuddleKind::Data,
//!     uuid: Uuid::from_random([1; 16]),
//!     owner: Uuid::from_random([2; 16]),
//!     address: consts::DEFAULT_BASE,
//!     size: consts::UNIT,
//!     is_root: true,
//! };
//! let mut file = vec![0; consts::UNIT as usize];
//! file[..puddle::ENCODED_SIZE].copy_from_slice(&puddle::encode(&header));
//! assert_eq!(puddle::parse(&file, file.len() as u64)?, header);
//!
//! file[20] ^= 1;
//! assert!(puddle::parse(&file, file.len() as u64).unwrap_err().to_string().contains("damaged"));
//! # Ok::<(), durum_format::FormatError>(())
//! ```

#![warn(clippy::unwrap_used)]

pub mod catalog;
pub mod code;
pub mod consts;
pub mod content;
pub mod crc;
pub mod dump;
mod engine;
pub mod error;
pub mod export;
pub mod extent;
mod header;
pub mod home;
pub mod log;
pub mod log_space;
pub mod migrate;
pub mod nvl;
pub mod puddle;
pub mod reach;
pub mod record;
pub mod registry;
pub mod section;
pub mod store;
mod text;
pub mod twin;
pub mod types;
mod uuid;

pub use consts::*;
pub use engine::EngineKind;
pub use error::{Fault, FormatError};
pub use uuid::Uuid;
