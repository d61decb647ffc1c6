//! Types with a descriptor: what may be allocated in a pool.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use durum_format::types::{
    Count, Declarations, Descriptor, Field, Primitive, Registry, Strength, Type,
};

/// A type that a pool can hold: its layout is fixed, and the store knows where its pointers are.
///
/// Implemented by [`describe!`](crate::describe) for structs. Primitives, raw pointers to described types, and arrays
/// of them are described already.
///
/// # Safety
/// [`Described::layout`] tells the truth: size, alignment, and each pointer. Recovery, relocation and checks rely on
/// it. Any bytes that were once stored as this type may be read as this type by another build of the program, so its
/// representation is fixed (`repr(C)`, `repr(transparent)`, or a primitive).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not described, so it cannot live in a pool",
    label = "not `Described`",
    note = "list the fields of a `#[repr(C)]` struct behind it: `durum::describe!({Self} as \"name\" {{ field, another }});`, where \"name\" is what the store calls the type",
    note = "a type for `durum::typed` gets its description with `#[derive(PSafe)]`"
)]
pub unsafe trait Described: Sized + 'static {
    /// The name that pointers to this type go by; `None` where it has none, and pointers to it point to anything.
    fn name() -> Option<Cow<'static, str>>;

    /// The type's descriptor in terms of names; named types that it mentions are declared through `walk`.
    fn layout(walk: &mut Walk) -> Type<String>;

    /// The finished descriptor, made once for each type.
    fn description() -> &'static Description {
        described_at_run_time::<Self>()
    }
}

/// A finished descriptor with all that it reaches.
#[derive(Debug)]
pub struct Description {
    pub(crate) id: u64,
    /// Id and canonical text of the type and of every type that its pointers reach.
    pub(crate) texts: Vec<(u64, String)>,
    /// The store that registered it last, so that the next allocation need not ask.
    pub(crate) registered_with: AtomicU64,
}

impl Description {
    /// The id of the type: a hash of its canonical text (docs/format/types.md).
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Describes `T`.
    ///
    /// # Panics
    /// If the description contradicts itself: two types of one name, fields that overlap. That is an error in
    /// the program's declarations and shows at the first use of the type.
    pub fn of<T: Described>() -> Self {
        let mut walk = Walk::default();
        let layout = T::layout(&mut walk);
        let name = T::name().unwrap_or(Cow::Borrowed("value"));
        keep_notes(std::mem::take(&mut walk.notes));
        let descriptor = walk.finish(&name, layout).unwrap_or_else(|error| {
            panic!(
                "the description of {} is not usable: {error}",
                std::any::type_name::<T>()
            )
        });
        Self::from_descriptor(&descriptor)
    }

    /// Describes a type that was declared in another language.
    #[doc(hidden)]
    pub fn from_descriptor(descriptor: &Descriptor) -> Self {
        let mut registry = Registry::new();
        let texts = match registry.register(descriptor) {
            Ok(_) => registry
                .iter()
                .map(|(id, descriptor)| (id, descriptor.text().to_owned()))
                .collect(),
            // Two of its types share an id: registering the text itself will say so.
            Err(_) => vec![(descriptor.id(), descriptor.text().to_owned())],
        };
        Self {
            id: descriptor.id(),
            texts,
            registered_with: AtomicU64::new(0),
        }
    }

    /// The canonical text of the type.
    pub fn text(&self) -> &str {
        let mut texts = self.texts.iter();
        let own = texts.find(|(id, _)| *id == self.id);
        own.map_or("", |(_, text)| text.as_str())
    }

    #[inline]
    pub(crate) fn is_registered_with(&self, store_key: u64) -> bool {
        self.registered_with.load(Ordering::Relaxed) == store_key
    }
}

/// Something about a type, for whom it concerns.
pub(crate) type Note = &'static (dyn Any + Sync);

/// What was noted about the types that the process has described, in order, each once.
static NOTES: RwLock<Vec<Note>> = RwLock::new(Vec::new());

fn keep_notes(notes: Vec<Note>) {
    if notes.is_empty() {
        return;
    }
    let mut kept = NOTES.write().unwrap_or_else(PoisonError::into_inner);
    for note in notes {
        if !kept.iter().any(|other| std::ptr::addr_eq(*other, note)) {
            kept.push(note);
        }
    }
}

/// The notes but the first `seen`.
pub(crate) fn notes_since(seen: usize) -> Vec<Note> {
    let kept = NOTES.read().unwrap_or_else(PoisonError::into_inner);
    kept.get(seen..).unwrap_or_default().to_vec()
}

/// Descriptions that a thread has used before, found without a lock.
const RECENT: usize = 16;

thread_local! {
    static RECENTLY_USED: [Cell<Option<(TypeId, &'static Description)>>; RECENT] = const { [const { Cell::new(None) }; RECENT] };
}

#[inline]
fn described_at_run_time<T: Described>() -> &'static Description {
    let id = TypeId::of::<T>();
    // Different types have different layouts often enough, and the compiler knows these.
    let slot = (size_of::<T>() / 8 + align_of::<T>()) % RECENT;
    RECENTLY_USED.with(|recent| match recent[slot].get() {
        Some((known, description)) if known == id => description,
        _ => {
            let description = description_of::<T>(id);
            recent[slot].set(Some((id, description)));
            description
        }
    })
}

#[cold]
fn description_of<T: Described>(id: TypeId) -> &'static Description {
    static KNOWN: RwLock<Option<HashMap<TypeId, &'static Description>>> = RwLock::new(None);
    if let Some(known) = KNOWN
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .and_then(|known| known.get(&id))
    {
        return known;
    }
    let description: &'static Description = Box::leak(Box::new(Description::of::<T>()));
    KNOWN
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .entry(id)
        .or_insert(description)
}

/// The id of `T` in the descriptions of builds to which all options of values were bytes.
pub(crate) fn id_with_bytes<T: Described>() -> u64 {
    let mut walk = Walk {
        options_are_bytes: true,
        ..Walk::default()
    };
    let layout = T::layout(&mut walk);
    let name = T::name().unwrap_or(Cow::Borrowed("value"));
    match walk.finish(&name, layout) {
        Ok(descriptor) => descriptor.id(),
        // What contradicts itself does so in its own description, too.
        Err(_) => T::description().id(),
    }
}

/// Goes over types that mention each other, and declares each once.
#[derive(Default)]
pub struct Walk {
    declarations: Declarations,
    notes: Vec<Note>,
    begun: HashMap<String, TypeId>,
    error: Option<String>,
    options_are_bytes: bool,
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk")
            .field("declarations", &self.declarations)
            .finish_non_exhaustive()
    }
}

impl Walk {
    /// A pointer to `T`, which is declared if it has a name.
    pub fn pointer_to<T: Described>(&mut self) -> Type<String> {
        match self.declare::<T>() {
            Some(name) => Type::pointer(name),
            None => Type::pointer_to_any(),
        }
    }

    /// A pointer to `T` that does not keep it alive.
    pub fn weak_to<T: Described>(&mut self) -> Type<String> {
        match self.declare::<T>() {
            Some(name) => Type::weak(name),
            None => Type::Pointer {
                strength: Strength::Weak,
                target: None,
            },
        }
    }

    /// Remembers something about the types that it goes over: [`notes_since`] tells it.
    pub(crate) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Whether it describes options of values as bytes, as all builds did once.
    pub(crate) fn options_are_bytes(&self) -> bool {
        self.options_are_bytes
    }

    /// Declares `T` under its name, if it has one.
    fn declare<T: Described>(&mut self) -> Option<String> {
        let name = T::name()?.into_owned();
        if Primitive::from_name(&name).is_some() {
            return Some(name);
        }
        match self.begun.insert(name.clone(), TypeId::of::<T>()) {
            None => {
                let layout = T::layout(self);
                if let Err(error) = self.declarations.declare_as(&name, layout) {
                    self.error.get_or_insert(error.to_string());
                }
            }
            // Pointers name their targets: of two types with one name only one would be checked.
            Some(other) if other != TypeId::of::<T>() => {
                self.error
                    .get_or_insert_with(|| format!("two types are called \"{name}\""));
            }
            Some(_) => {}
        }
        Some(name)
    }

    /// A field of a struct `S`, its type taken from the accessor.
    pub fn field<S, F: Described>(
        &mut self,
        name: &str,
        offset: usize,
        _type: impl Fn(&S) -> &F,
    ) -> Field<String> {
        Field::new(name, offset as u64, F::layout(self))
    }

    fn finish(self, name: &str, layout: Type<String>) -> Result<Descriptor, String> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut all = self.declarations;
        let found = match layout {
            Type::Primitive(primitive) => all.resolve(primitive.name()),
            layout => (all.declare_as(name, layout)).and_then(|()| all.resolve(name)),
        };
        found.map_err(|error| error.to_string())
    }
}

/// The name of the type with this canonical text.
pub(crate) fn name_in(text: &str) -> Option<String> {
    Descriptor::parse(text).ok()?.name().map(str::to_owned)
}

macro_rules! primitives {
    ($($rust:ty => $primitive:ident),* $(,)?) => { $(
        // SAFETY: a primitive of this size without pointers.
        unsafe impl Described for $rust {
            fn name() -> Option<Cow<'static, str>> {
                Some(Cow::Borrowed(Primitive::$primitive.name()))
            }

            fn layout(_: &mut Walk) -> Type<String> {
                Type::Primitive(Primitive::$primitive)
            }
        }
    )* };
}

primitives! {
    u8 => U8, u16 => U16, u32 => U32, u64 => U64, i8 => I8, i16 => I16, i32 => I32, i64 => I64, f32 => F32, f64 => F64,
    bool => Bool, char => Char, usize => U64, isize => I64,
}

const _: () = assert!(usize::BITS == 64, "pools hold 64-bit pointers");

macro_rules! pointers {
    ($($pointer:ty),*) => { $(
        // SAFETY: a native pointer, described as one.
        unsafe impl<T: Described> Described for $pointer {
            fn name() -> Option<Cow<'static, str>> {
                None
            }

            fn layout(walk: &mut Walk) -> Type<String> {
                walk.pointer_to::<T>()
            }
        }
    )* };
}

pointers!(*mut T, *const T, Option<std::ptr::NonNull<T>>);

// SAFETY: N elements in a row, each described.
unsafe impl<T: Described, const N: usize> Described for [T; N] {
    fn name() -> Option<Cow<'static, str>> {
        T::name().map(|name| Cow::Owned(format!("[{name};{N}]")))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        T::layout(walk).array(Count::Fixed(N as u64))
    }
}

// SAFETY: no bytes at all.
unsafe impl<T: 'static> Described for PhantomData<T> {
    fn name() -> Option<Cow<'static, str>> {
        None
    }

    fn layout(_: &mut Walk) -> Type<String> {
        Type::Opaque { size: 0, align: 1 }
    }
}

/// Describes a `repr(C)` struct, so that it can live in a pool.
///
/// The name in quotes is language-neutral: C and C++ programs that declare the same name and fields read the same
/// pools. Every field has to be listed, and each one's type must be described, too.
///
/// ```
/// #[repr(C)]
/// struct Node {
///     value: u64,
///     next: *mut Node,
/// }
/// durum::describe!(Node as "node" { value, next });
/// ```
///
/// Behind the names stand those that a type and its fields had before, and `in_reserved` where a field takes the place
/// of bytes that were [`Reserved`](crate::typed::Reserved) (docs/how-to/change-types.md):
///
/// ```
/// #[repr(C)]
/// struct Job {
///     attempts: u64,
///     deadline: u64,
/// }
/// durum::describe!(Job as "job" was "task" { attempts was "tries", deadline in_reserved });
/// ```
///
/// A field that is left out does not compile:
///
/// ```compile_fail
/// #[repr(C)]
/// struct Node {
///     value: u64,
///     next: *mut Node,
/// }
/// durum::describe!(Node as "node" { value });
/// ```
#[macro_export]
macro_rules! describe {
    ($type:ident as $name:literal $(was $former:literal)* {
        $($field:ident $($word:ident $($former_field:literal)?)*),* $(,)?
    }) => {
        // SAFETY: the layout is measured by the compiler, and the pattern below names every field.
        unsafe impl $crate::Described for $type {
            fn name() -> ::core::option::Option<::std::borrow::Cow<'static, str>> {
                ::core::option::Option::Some(::std::borrow::Cow::Borrowed($name))
            }

            fn layout(walk: &mut $crate::Walk) -> $crate::types::Type<::std::string::String> {
                let _every_field_is_listed = |object: &$type| { let $type { $($field: _),* } = object; };
                let fields = ::std::vec![$(
                    walk.field(stringify!($field), ::core::mem::offset_of!($type, $field), |object: &$type| &object.$field)
                        $(.$word($(&[$former_field])?))*
                ),*];
                $crate::types::Type::structure(
                    $name,
                    ::core::mem::size_of::<$type>() as u64,
                    ::core::mem::align_of::<$type>() as u64,
                    fields,
                )
                .was(&[$($former),*])
            }

            fn description() -> &'static $crate::Description {
                static DESCRIPTION: ::std::sync::OnceLock<$crate::Description> = ::std::sync::OnceLock::new();
                DESCRIPTION.get_or_init($crate::Description::of::<$type>)
            }
        }
    };
}
