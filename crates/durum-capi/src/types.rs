//! Types that DURUM_TYPE declares, turned into descriptors: the same ones, with the same ids, that Rust derives from
//! the same names.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use client::{Description, Pool};
use durum_format::types::{Count, Declarations, Descriptor, Field, Primitive, Type};

use crate::code;
use crate::guard::{self, Failure, Result, run};

/// Bytes without pointers, about which no more is known.
pub const DURUM_KIND_BYTES: u32 = 0;
/// Unsigned, 8 bits.
pub const DURUM_KIND_U8: u32 = 1;
/// Unsigned, 16 bits.
pub const DURUM_KIND_U16: u32 = 2;
/// Unsigned, 32 bits.
pub const DURUM_KIND_U32: u32 = 3;
/// Unsigned, 64 bits.
pub const DURUM_KIND_U64: u32 = 4;
/// Signed, 8 bits.
pub const DURUM_KIND_I8: u32 = 5;
/// Signed, 16 bits.
pub const DURUM_KIND_I16: u32 = 6;
/// Signed, 32 bits.
pub const DURUM_KIND_I32: u32 = 7;
/// Signed, 64 bits.
pub const DURUM_KIND_I64: u32 = 8;
/// IEEE 754, 32 bits.
pub const DURUM_KIND_F32: u32 = 9;
/// IEEE 754, 64 bits.
pub const DURUM_KIND_F64: u32 = 10;
/// One byte, 0 or 1.
pub const DURUM_KIND_BOOL: u32 = 11;
/// A pointer: to the type of `target`, or to what is called `target_name`, or to anything.
pub const DURUM_KIND_POINTER: u32 = 20;
/// A struct in the struct: the type of `target`.
pub const DURUM_KIND_STRUCT: u32 = 21;
/// Bytes that mean nothing after the program has ended: locks and the like.
pub const DURUM_KIND_VOLATILE: u32 = 22;
/// Bytes that are zero until a later version of the type has fields there.
pub const DURUM_KIND_RESERVED: u32 = 23;
/// No field: the one of this name was called `target_name` before.
pub const DURUM_KIND_WAS: u32 = 30;
/// No field: the one of this name may lie in bytes that were reserved.
pub const DURUM_KIND_IN_RESERVED: u32 = 31;
/// No field: the type was called `target_name` before.
pub const DURUM_KIND_TYPE_WAS: u32 = 32;

/// The count of a flexible array member.
pub const DURUM_COUNT_TAIL: u64 = u64::MAX;

const PRIMITIVES: [(u32, Primitive); 11] = [
    (DURUM_KIND_U8, Primitive::U8),
    (DURUM_KIND_U16, Primitive::U16),
    (DURUM_KIND_U32, Primitive::U32),
    (DURUM_KIND_U64, Primitive::U64),
    (DURUM_KIND_I8, Primitive::I8),
    (DURUM_KIND_I16, Primitive::I16),
    (DURUM_KIND_I32, Primitive::I32),
    (DURUM_KIND_I64, Primitive::I64),
    (DURUM_KIND_F32, Primitive::F32),
    (DURUM_KIND_F64, Primitive::F64),
    (DURUM_KIND_BOOL, Primitive::Bool),
];

/// The number that a DURUM_KIND_* is.
pub(crate) fn number_of(kind: u32) -> Option<Primitive> {
    let found = PRIMITIVES.iter().find(|(of, _)| *of == kind);
    found.map(|(_, primitive)| *primitive)
}

/// The deepest struct in a struct; one that contains itself would be endless.
const DEPTH_MAX: usize = 32;
/// Alignment of objects without a type, as malloc's.
const UNTYPED_ALIGN: usize = 16;

/// A field in a type declaration. The macros DURUM_FIELD, DURUM_PTR and their relatives make them.
#[derive(Debug)]
#[repr(C)]
pub struct FieldDeclaration {
    /// Its name.
    pub name: *const c_char,
    /// Its offset in bytes.
    pub offset: u64,
    /// Bytes of one element.
    pub size: u64,
    /// Elements of an array; 0: no array; DURUM_COUNT_TAIL: a flexible array member.
    pub count: u64,
    /// Its alignment in bytes.
    pub align: u32,
    /// One of DURUM_KIND_*.
    pub kind: u32,
    /// What it points to where `target` is NULL: a number by name, "" for the struct itself, NULL for anything.
    pub target_name: *const c_char,
    /// The declaration of the type that it points to or consists of.
    pub target: Option<unsafe extern "C" fn() -> *mut TypeDeclaration>,
}

/// A declared type. DURUM_TYPE makes one, DURUM_TYPE_OF finds it; it lasts as long as the program.
#[derive(Debug)]
#[repr(C)]
pub struct TypeDeclaration {
    /// Its language-neutral name.
    pub name: *const c_char,
    /// sizeof.
    pub size: u64,
    /// Its alignment in bytes.
    pub align: u64,
    /// Its fields.
    pub fields: *const FieldDeclaration,
    /// How many.
    pub field_count: u64,
    /// durum's own; NULL at first.
    pub known: *mut c_void,
}

impl TypeDeclaration {
    /// What durum found out about the type.
    #[inline(always)]
    fn known(&self) -> &AtomicPtr<Description> {
        let place = (&raw const self.known).cast_mut().cast();
        // SAFETY: aligned, lives as long as the declaration, and only ever accessed here.
        unsafe { AtomicPtr::from_ptr(place) }
    }

    /// What it is in no language's own words.
    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        describe(self)
    }

    /// Its description, if somebody has asked for it before.
    #[inline(always)]
    fn known_description(&self) -> Option<&'static Description> {
        // SAFETY: null, or leaked by `description`.
        unsafe { self.known().load(Ordering::Acquire).as_ref() }
    }

    fn description(&self) -> Result<&'static Description> {
        if let Some(description) = self.known_description() {
            return Ok(description);
        }
        let descriptor = describe(self)?;
        let made = Box::into_raw(Box::new(Description::from_descriptor(&descriptor)));
        let first = self.known().compare_exchange(
            ptr::null_mut(),
            made,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let description = match first {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: made above, and nobody else knows it.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
        // SAFETY: leaked, so it lasts.
        Ok(unsafe { &*description })
    }
}

/// The id and alignment of a type, registered with the pool's store; checks that `size` is that of one or more objects
/// of it.
///
/// # Safety
/// NULL, or a declaration that lasts as long as the program.
pub(crate) unsafe fn ensure(
    pool: &Pool,
    declaration: *mut TypeDeclaration,
    size: usize,
) -> Result<(u64, usize)> {
    // SAFETY: as the caller promises.
    let Some(declaration) = (unsafe { declaration.as_ref() }) else {
        return Ok((0, UNTYPED_ALIGN));
    };
    let id = pool.ensure_described(declaration.description()?)?;
    if (size as u64) < declaration.size {
        return Err(Failure::argument(format!(
            "{size} bytes are too few for an object of {} bytes",
            declaration.size
        )));
    }
    Ok((id, declaration.align as usize))
}

/// What [`ensure`] would look at, and the alignment, where somebody has asked for the type before, and nothing is
/// refused.
///
/// # Safety
/// As for [`ensure`].
#[inline(always)]
pub(crate) unsafe fn known(
    declaration: *mut TypeDeclaration,
    size: usize,
) -> Option<(Option<&'static Description>, usize)> {
    // SAFETY: as the caller promises.
    let Some(declaration) = (unsafe { declaration.as_ref() }) else {
        return Some((None, UNTYPED_ALIGN));
    };
    let description = declaration.known_description()?;
    (size as u64 >= declaration.size).then_some((Some(description), declaration.align as usize))
}

/// Whether `size` is that of one object of the type. What has no type may be a row of several.
///
/// # Safety
/// As for [`ensure`].
#[inline(always)]
pub(crate) unsafe fn is_lone(declaration: *mut TypeDeclaration, size: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { declaration.as_ref() }.is_some_and(|known| known.size == size as u64)
}

/// The id of a type: a hash of its canonical text (docs/format/types.md), the same in every language. 0 on failure:
/// DURUM_E_TYPE a declaration that contradicts itself, or two of one name; DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_type_id(r#type: *mut TypeDeclaration) -> u64 {
    run(|| {
        // SAFETY: a type made by DURUM_TYPE, as the conventions say.
        match unsafe { r#type.as_ref() } {
            Some(declaration) => Ok(declaration.description()?.id()),
            None => Err(Failure::argument("the type is NULL")),
        }
    })
    .unwrap_or(0)
}

fn refused(error: impl ToString) -> Failure {
    Failure::new(code::DURUM_E_TYPE, error.to_string())
}

fn describe(declaration: &TypeDeclaration) -> Result<Descriptor> {
    let mut reader = Reader::default();
    let name = reader.name_of(declaration)?;
    // Pointers can lead round in circles, so what was found is read from a list, not by descending.
    let mut next = 0;
    while let Some(declaration) = reader.found.get(next).copied() {
        let tree = reader.tree(declaration, 0)?;
        reader.declarations.declare(tree).map_err(refused)?;
        next += 1;
    }
    reader.declarations.resolve(&name).map_err(refused)
}

/// Reads declarations and what they mention.
#[derive(Default)]
struct Reader<'a> {
    declarations: Declarations,
    /// Every declaration met, in this order.
    found: Vec<&'a TypeDeclaration>,
    names: HashMap<*const TypeDeclaration, String>,
}

impl<'a> Reader<'a> {
    fn name_of(&mut self, declaration: &'a TypeDeclaration) -> Result<String> {
        let key = ptr::from_ref(declaration);
        if let Some(name) = self.names.get(&key) {
            return Ok(name.clone());
        }
        let name = text(declaration.name, "a type's name")?.to_owned();
        self.names.insert(key, name.clone());
        self.found.push(declaration);
        Ok(name)
    }

    fn tree(&mut self, declaration: &'a TypeDeclaration, depth: usize) -> Result<Type<String>> {
        let name = self.name_of(declaration)?;
        if depth > DEPTH_MAX {
            return Err(refused(format!(
                "\"{name}\" contains itself, or nests too deep"
            )));
        }
        let fields = if declaration.field_count == 0 {
            &[]
        } else {
            // SAFETY: the array that the macro made beside the count.
            unsafe {
                std::slice::from_raw_parts(declaration.fields, declaration.field_count as usize)
            }
        };
        let is_field = |field: &&FieldDeclaration| field.kind < DURUM_KIND_WAS;
        let mut found = (fields.iter().filter(is_field))
            .map(|field| self.field(field, &name, depth))
            .collect::<Result<Vec<_>>>()?;
        let mut formers = Vec::new();
        for said in fields.iter().filter(|field| !is_field(field)) {
            formers.extend(history(said, &mut found)?);
        }
        let (size, align) = (declaration.size, declaration.align);
        Ok(Type::structure(name, size, align, found).was(&formers))
    }

    /// A field of the type called `owner`.
    fn field(
        &mut self,
        field: &'a FieldDeclaration,
        owner: &str,
        depth: usize,
    ) -> Result<Field<String>> {
        let name = text(field.name, "a field's name")?;
        let (size, align) = (field.size, u64::from(field.align));
        let element = match field.kind {
            DURUM_KIND_BYTES => Type::Opaque { size, align },
            DURUM_KIND_VOLATILE => Type::Volatile { size, align },
            DURUM_KIND_RESERVED => Type::Reserved { size, align },
            DURUM_KIND_POINTER => self.pointer(field, owner)?,
            DURUM_KIND_STRUCT => match target(field) {
                Some(inner) => self.tree(inner, depth + 1)?,
                None => return Err(refused(format!("the field \"{name}\" has no type"))),
            },
            number => match PRIMITIVES.iter().find(|(kind, _)| *kind == number) {
                Some((_, primitive)) => Type::Primitive(*primitive),
                None => {
                    let what = format!("the field \"{name}\" is of the unknown kind {number}");
                    return Err(refused(what));
                }
            },
        };
        let ty = match field.count {
            0 => element,
            DURUM_COUNT_TAIL => element.array(Count::Tail),
            count => element.array(Count::Fixed(count)),
        };
        Ok(Field::new(name, field.offset, ty))
    }

    fn pointer(&mut self, field: &'a FieldDeclaration, owner: &str) -> Result<Type<String>> {
        if let Some(target) = target(field) {
            return Ok(Type::pointer(self.name_of(target)?));
        }
        if field.target_name.is_null() {
            return Ok(Type::pointer_to_any());
        }
        Ok(
            match text(field.target_name, "the name of a pointer's target")? {
                "" => Type::pointer(owner),
                name => Type::pointer(name),
            },
        )
    }
}

/// Goes by what is said about a field of those found, or gives a former name of their type.
fn history<'a>(said: &'a FieldDeclaration, found: &mut [Field<String>]) -> Result<Option<&'a str>> {
    let former = || text(said.target_name, "a former name");
    if said.kind == DURUM_KIND_TYPE_WAS {
        return former().map(Some);
    }
    let name = text(said.name, "a field's name")?;
    let field = found.iter_mut().find(|field| field.name == name);
    let Some(field) = field else {
        let what = format!("\"{name}\", of which something is said, is no field of the type");
        return Err(refused(what));
    };
    match said.kind {
        DURUM_KIND_WAS => field.was.push(former()?.to_owned()),
        DURUM_KIND_IN_RESERVED => field.is_in_reserved = true,
        other => {
            let what = format!("\"{name}\" is of the unknown kind {other}");
            return Err(refused(what));
        }
    }
    Ok(None)
}

fn target(field: &FieldDeclaration) -> Option<&'static TypeDeclaration> {
    let target = field.target?;
    // SAFETY: the function that DURUM_TYPE made, which gives a declaration that lasts as long as the program.
    unsafe { target().as_ref() }
}

fn text<'a>(string: *const c_char, what: &str) -> Result<&'a str> {
    // SAFETY: a string constant that the macro made.
    unsafe { guard::string(string, what) }.map_err(|failure| refused(failure.message))
}
