//! Type descriptors: what an object's bytes mean, in no language's own words. `docs/format/types.md`.
//!
//! A program *declares* its types by name ([`Declarations`]); resolving one gives a [`Descriptor`], which is complete
//! in itself: a canonical text, an id hashed from it, and what is reachable through pointers. The store keeps texts,
//! so a [`Registry`] can read any object without the program that made it.
//!
//! ```
//! use durum_format::types::{Declarations, Descriptor, Field, Primitive, Type};
//!
//! let mut declared = Declarations::new();
//! declared.declare(Type::structure(
//!     "Node",
//!     16,
//!     8,
//!     vec![
//!         Field::new("value", 0, Type::Primitive(Primitive::I64)),
//!         Field::new("next", 8, Type::pointer("Node")),
//!     ],
//! ))?;
//! let node = declared.resolve("Node")?;
//! assert_eq!(node.text(), "struct \"Node\"(16,8){0:\"value\":i64;8:\"next\":*0;}\n");
//! assert_eq!(Descriptor::parse(node.text())?.id(), node.id());
//!
//! let object = [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0x20, 0, 0];
//! let pointers: Vec<u64> = node.pointers(&object)?.map(|pointer| pointer.offset).collect();
//! assert_eq!(pointers, [8]);
//! assert_eq!(node.path(&object, 8)?.text, "next");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
pub mod declare;
pub mod descriptor;
pub mod diff;
pub mod meanings;
mod names;
mod option;
pub mod pointers;
pub mod registry;
mod steps;
pub mod successor;
mod text;
pub mod tree;
mod valid;
pub mod value;

pub use check::{DEPTH_MAX, FORMERS_MAX, Layout, NAME_MAX, TYPE_SIZE_END, TypeError};
pub use declare::Declarations;
pub use descriptor::{Descriptor, type_id};
pub use diff::{Change, Difference, Differences, differences};
pub use meanings::Meanings;
pub(crate) use names::Renames;
pub(crate) use option::{BYTES, as_bytes, has_bytes, id_with_bytes, value_in_bytes, was_bytes};
pub use pointers::FieldPath;
pub use registry::Registry;
pub(crate) use steps::{
    Part, Repeats, Step, compile, compile_by, count_elements, read_unsigned, walk,
};
pub use steps::{PointerAt, ReservedAt, ValueError, VolatileAt};
pub use successor::{Obstacle, successors};
pub(crate) use text::{has_history as text_has_history, has_other_case as text_has_other_case};
pub(crate) use text::{parse as parse_line, write as write_line};
pub(crate) use tree::says;
pub use tree::{Case, Count, Field, Primitive, Strength, Struct, Type, Variants};
pub(crate) use valid::{all_are_values, is_value};
pub use value::Value;
