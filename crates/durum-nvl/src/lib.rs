//! The runtime of NVL-C: what code that `durumcc` compiles calls. It is a part of libdurum; `nvl.h` is what programs
//! see, docs/reference/nvl-runtime.md what the compiler relies on.
//!
//! A heap is a pool of a durum store. Each allocation has a header with the exact number of pointers in the heap that
//! lead to it; pointers in volatile memory are not counted. An allocation to which none in the heap leads is on the
//! *zero list*, and is freed when no volatile pointer leads to it either: when the heap is closed or opened, or when a
//! collection has looked through the program's memory.
//!
//! Reading order, in which each module imports only those before it:
//!
//! | modules | what they are |
//! | --- | --- |
//! | `fatal`, `open_error` | how a program ends that breaks a rule, and why a heap was not opened |
//! | `layout`, `types` | what lies in a heap, and the types of its allocations |
//! | `heap`, `object` | an open heap, and the allocation that an address leads to |
//! | `in_use`, `presence`, `handles` | who uses a heap at the moment, and what programs call it |
//! | `words`, `zero_list` | words that a transaction changes, and the list of what nothing in the heap leads to |
//! | `pending` | counts that change at the commit |
//! | `dirty`, `locks`, `tx` | stores that are not durable yet, isolation, and transactions |
//! | `store_tx`, `weak`, `store`, `plain` | what programs store, in whichever transaction |
//! | `roots`, `free`, `collect` | what is freed, and when |
//! | `changes` | what differs between a program's types and those of a heap |
//! | `alloc`, `open` | allocations and the root; heaps opened, made, closed |
//! | [`migrate`] | heaps whose types have changed |
//! | [`abi`] | the functions that compiled code calls |

#![warn(clippy::unwrap_used)]

pub mod abi;
mod alloc;
mod changes;
mod collect;
mod dirty;
mod fatal;
mod free;
mod handles;
mod heap;
mod in_use;
mod layout;
mod locks;
pub mod migrate;
mod object;
mod open;
pub mod open_error;
mod pending;
mod plain;
mod presence;
mod roots;
mod store;
mod store_tx;
mod tx;
mod types;
mod weak;
mod words;
mod zero_list;

use durum::{asymmetric, primitive};

pub use handles::Handle;
pub use heap::Heap;
pub use open::HeapOptions;
pub use open_error::OpenError;
