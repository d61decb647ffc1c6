//! What may be asked of `durum inspect`, and how to read what it shows.

use std::path::PathBuf;

use clap::Args;

use super::values::{depth, number};

/// Behind the options.
pub(super) const HELP: &str = "\
Examples:
  durum inspect /mnt/pmem/store words --depth 3
  durum inspect /mnt/pmem/store words --path 'root.tasks[2203].name'
  durum inspect /mnt/pmem/store words --find Task --json
  durum inspect /mnt/pmem/store words --heap --log --json

How to read it:
  An object is what a program has allocated at once. It is shown where the first pointer to it (->) stands; a later one shows the object's path: \
-> root.tasks[3]. Both may own the object, lead back to one above or only beside it: types do not tell. A weak pointer (~>) keeps nothing, and is \
not followed. One to another pool shows that pool and the path there: -> events: root.last.
  64 elements, 3 filled [..]: in 3 something is stored; the others, of which all bytes are zero or which are null pointers, are left out. \
0 × 7 are seven elements that are alike.
  chain by next [..]: objects, of which each leads to the next by its field `next`. They do not count for --depth.
  null is a pointer that leads nowhere, null (-> job) tells to which type it could. None is an option without a value: an option is a value that may be missing.
  Cells (PCell, PRefCell, PMutex: what a value is kept in so that it can change) are not shown, only the values in them.

A PATH begins with root, or with the address of an object (0x20a90c603040). Behind it come .FIELD, [NUMBER] of an element or of an object of a chain, \
and [KEY] of a map: a number, a text with quotes or without, a struct as it is shown or, if it has one field, that. Pointers, cells and options are \
not named. Examples: root.tasks[2203].name, root.index[\"pools\"][0], root.entries[1000].place, 0x20a90c603040.balance

With --raw an object is named #1, #2, ... where it is printed; there `cycle` marks a pointer that leads back to an object it is part of.

A service shows logs to root and its own user.";

#[derive(Debug, Args)]
pub struct Inspect {
    /// The store
    pub store: PathBuf,
    /// The pool, unless it is named with a service: durum:POOL; without one the only one is shown, or all are listed
    pub pool: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Hide the program's data; structure, counts and pointers stay
    #[arg(long)]
    pub redact: bool,
    /// Follow at most this many pointers in a row [default: 8; with --find 0]
    #[arg(long, value_name = "N", value_parser = depth)]
    pub depth: Option<usize>,
    /// Print at most this many objects
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub objects: usize,
    /// Print at most this many elements of a list, map or array
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub elements: usize,
    /// Print the value at this path instead of the root: root.tasks[2203].name
    #[arg(long, value_name = "PATH", group = "wanted")]
    pub path: Option<String>,
    /// Print all objects of this type, by its name or the last part of it
    #[arg(long, value_name = "TYPE", group = "wanted")]
    pub find: Option<String>,
    /// Print which pointers of all pools lead to this address, or to the object that it lies in
    #[arg(long, value_name = "ADDRESS", value_parser = number, group = "wanted")]
    pub to: Option<u64>,
    /// Print objects as they lie in memory, with their addresses, and not what they mean
    #[arg(long, group = "wanted")]
    pub raw: bool,
    /// Print free space by size, and objects by type
    #[arg(long, conflicts_with = "wanted")]
    pub heap: bool,
    /// Print the logs that concern the store
    #[arg(long, conflicts_with = "wanted")]
    pub log: bool,
    /// Look at the pool as it is at one moment in the program that has it open, which goes on
    #[arg(long, conflicts_with = "log")]
    pub live: bool,
}
