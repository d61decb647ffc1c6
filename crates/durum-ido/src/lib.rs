//! The runtime of lock-based code whose sections are completed after a crash (iDO, MICRO'18). It is a part of
//! libdurum; docs/reference/ido-ir.md is what compiled code relies on, docs/tutorials/locks.md what programs see.
//!
//! What a thread does while it holds locks is a *section*. Compiled code records where each *region* of a section
//! begins, with what is alive there. After a crash the next program that opens the heap has the same code go on from
//! the last records, with the same locks, until all sections have ended.
//!
//! ```text
//! lock                                    depth 1, nothing is written
//! record                                  the record is durable: one fence
//! stores, wrote                           lines are noted
//! record                                  lines and the record are durable, which has what was stored: one fence
//! unlock                                  lines are durable, then that it has ended; the lock is free: two fences
//! ```
//!
//! Reading order, in which each module imports only those before it:
//!
//! | modules | what they are |
//! | --- | --- |
//! | `fatal`, `open_error`, `sites` | how a program ends, why a heap was not opened, every write-back and fence |
//! | `code`, `names`, `addresses`, `program`, `reach` | code that goes on, addresses of the program and of the heap |
//! | `repeats`, `lines`, `memory` | stores that are not durable yet, memory that was taken and freed |
//! | `deposit` | code that completes sections without the program |
//! | `slots`, `stack`, `held`, `stats` | places for records, stacks, locks, what is counted |
//! | `thread` | what is known of a thread: all of that |
//! | `record`, `section` | records, and where sections begin and end |
//! | `refusals` | what sections may not do |
//! | `layout`, `types` | what the runtime has in the heap, and types |
//! | `heap`, `globals`, `alloc` | the heap that is open, variables in it, and memory of it |
//! | `locks` | locks that know nothing of a crash, one file for each kind |
//! | `resume`, `open` | what was interrupted goes on, when a heap is opened |
//! | [`abi`], [`abi_locks`], [`abi_typed`], [`abi_malloc`] | the functions that compiled code calls |
//! | [`abi_code`] | those that code has which only completes sections |

#![warn(clippy::unwrap_used)]

pub mod abi;
pub mod abi_code;
pub mod abi_locks;
pub mod abi_malloc;
pub mod abi_typed;
mod addresses;
mod alloc;
mod code;
mod deposit;
mod fatal;
mod globals;
mod heap;
mod held;
mod layout;
mod lines;
mod locks;
mod memory;
mod names;
mod open;
mod open_error;
mod program;
mod reach;
mod record;
mod refusals;
mod repeats;
mod resume;
mod section;
mod sites;
mod slots;
mod stack;
mod stats;
mod thread;
mod types;

use durum::{futex_lock, primitive};

pub use open::{close, complete, open};
pub use open_error::OpenError;
pub use sites::sites;
