//! The derives. `durum-derive` expands them; what programs have to know of them stands here, beside what it is about.

/// Lets a struct or enum live in a pool.
///
/// Every field must be `PSafe`. The layout must be fixed, because objects outlive the program that made them, and the
/// next build of it might order fields otherwise: `#[repr(C)]` or `#[repr(transparent)]` for a struct, `#[repr(C, u8)]`
/// or `#[repr(u8)]` (any integer of at most 64 bits; the latter, if it has no fields) for an enum.
///
/// ```
/// use durum::typed::*;
/// pool!(P);
///
/// #[derive(PSafe)]
/// #[repr(C)]
/// struct Node {
///     value: i64,
///     next: PRefCell<Option<Pbox<Node, P>>, P>,
/// }
/// ```
///
/// Type parameters must be `PSafe`, too, except for pools (those with a bound `PoolType`). Where a field is of an
/// associated type, its bound has to be written: `where T::Key: PSafe`.
///
/// # Names
/// In the store the type goes by its identifier, with its arguments if it is generic: `Pair<u64,Node>`; pools are left
/// out. A program with two types of one name, or one that renames a type, says the name itself:
///
/// ```
/// # use durum::typed::*;
/// # pool!(P);
/// #[derive(PSafe)]
/// #[repr(C)]
/// #[durum(name = "index::Node")]
/// struct Node {
///     key: u64,
///     children: [Option<Pbox<Node, P>>; 2],
/// }
/// ```
///
/// # What is refused
/// ```compile_fail
/// # use durum::typed::*;
/// #[derive(PSafe)]
/// #[repr(C)]
/// struct Node {
///     value: i64,
///     next: Option<Box<Node>>, // `Box<Node>` cannot live in a pool
/// }
/// ```
///
/// - Fields that are not `PSafe`: what they point to is gone when the program ends.
/// - `impl Drop`, by conflicting implementations of `Node_must_not_implement_Drop`: a destructor could change
///   persistent memory behind the log's back. Handles in fields are dropped as usual.
/// - `packed`: fields need references, and these need alignment. Unions: nobody knows which field counts. Lifetimes:
///   nothing in a pool can borrow.
#[doc(inline)]
pub use durum_derive::PSafe;

/// Makes a type a root of which each field begins as a root of its type does; for an enum, with the unit variant that
/// is marked `#[default]`.
///
/// ```
/// # use durum::typed::*;
/// # pool!(P);
/// # #[derive(PSafe)]
/// # #[repr(C)]
/// # struct Node(u64);
/// #[derive(PSafe, Root)]
/// #[repr(C)]
/// struct Head {
///     first: PRefCell<Option<Pbox<Node, P>>, P>,
///     length: PCell<u64, P>,
/// }
/// ```
///
/// The type can be the root of pools of one type: the one that `#[durum(pool = P)]` says, else its parameter with the
/// bound `PoolType`, else the one that its first pointer or cell names. If none of them names a pool, it can be the
/// root of any in which its fields can. Type parameters must be `Root`.
#[doc(inline)]
pub use durum_derive::Root;

/// Copies a struct or enum field by field.
///
/// ```
/// # use durum::typed::*;
/// # pool!(P);
/// #[derive(PSafe, PClone)]
/// #[repr(C)]
/// struct Entry {
///     key: u64,
///     next: Option<Pbox<Entry, P>>,
/// }
///
/// fn twice(entry: &Entry, j: &Journal<P>) -> [Pbox<Entry, P>; 2] {
///     [Pbox::new(entry.pclone(j), j), Pbox::new(entry.pclone(j), j)]
/// }
/// ```
///
/// The journal belongs to the pool that `#[durum(pool = P)]` says, else to the parameter with the bound `PoolType`,
/// else to the one that the first pointer, cell or collection among the fields names. If there is none of these, any
/// journal does. Aliases such as `p::Pbox<Node>` name no pool, so a type with those needs the attribute. Type
/// parameters must be `PClone`.
#[doc(inline)]
pub use durum_derive::PClone;

/// Lets a `Later` of a struct or enum be exchanged for those of its fields.
///
/// Makes a type that is named as this one with `Parts` behind: a struct with a `Later` for each field, as visible as
/// the field, or an enum of such cases.
///
/// ```
/// # use durum::typed::*;
/// # pool!(P);
/// #[derive(PSafe, Parts)]
/// #[repr(C, u8)]
/// enum Item {
///     Nothing,
///     Value(u64),
///     Node(Pbox<Item, P>),
/// }
///
/// /// Changes the value at the end; nothing on the way is logged.
/// fn set(item: Later<Item>, number: u64) {
///     match item.parts() {
///         ItemParts::Nothing => {}
///         ItemParts::Value(value) => *value.change() = number,
///         ItemParts::Node(inside) => set(inside.object(), number),
///     }
/// }
/// ```
#[doc(inline)]
pub use durum_derive::Parts;
