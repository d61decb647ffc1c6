//! The runtime of NVL-C: what code that `durumcc` compiles calls. It is a part of libdurum; `nvl.h` is what programs
//! see, docs/reference/nvl-runtime.md what the compiler relies on.
//!
//! A heap is a pool of a durum store. Each allocation has a header with the exact number of pointers in the heap that
//! lead to it; pointers in volatile memory are not counted. An allocation to which none in the heap leads is on the
//! *zero list*, and is freed when no volatile pointer leads to it either: when the heap is closed or opened, or when a
//! collection has looked through the program's memory.
//!
//! Reading order: `layout` (what lies in a heap), `types` (descriptors), `heap`, `opening` and `object` (what an
//! address is), `handles` and `presence` (who may use a heap), `tx` and `pending` (transactions and their counts),
//! `store`, `weak` and `alloc` (what programs do), `zero` and `free`, `collect` and `roots` (what is freed, and when),
//! `locks` (isolation), [`abi`] (the functions).

pub mod abi;
mod alloc;
mod collect;
mod fatal;
mod free;
mod handles;
mod heap;
mod layout;
mod locks;
mod noted;
mod object;
pub mod opening;
mod pending;
mod presence;
mod roots;
mod store;
mod tx;
mod types;
mod weak;
mod words;
mod zero;

pub use handles::Handle;
pub use heap::{Heap, HeapOptions};
pub use opening::OpenError;
