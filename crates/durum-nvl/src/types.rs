//! Types: from the descriptors in compiled code to what the store registers, and back to where the pointers are.
//!
//! A descriptor says what one element is. What the store knows is the whole allocation, under the name `nvl` and the
//! element's:
//!
//! ```text
//! struct "nvl node"(48,16){0:"count":u64; ...header... 48:"data":[struct "node"(16,8){..};field "count"];}
//! ```
//!
//! so that check, inspect, export and clone understand an allocation without this crate. Strong pointers become `*any`:
//! what they lead to says its type itself. Weak ones become strong pointers to a proxy, which is what they are. The map
//! of pointers is always made from that text, whether this program allocates objects of the type or has found them in
//! the heap.

use std::borrow::Borrow;
use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::hash::Hash;
use std::ops::Range;
use std::sync::{OnceLock, PoisonError, RwLock};

use durum::{Description, Store};
use durum_format::types::{
    Count, Declarations, Descriptor, Field, Primitive, Strength, Struct, Type, TypeError,
};
use rustc_hash::FxHashMap;

use crate::fatal::{Location, fatal};
use crate::layout::{HEADER, HEAP_TYPE, PROXY};

/// The least alignment of an allocation's data.
pub(crate) const ALIGN_MIN: u64 = 16;
const ALIGN_MAX: u64 = 64 << 10;

/// What the runtime knows of allocations of one type.
#[derive(Debug)]
pub(crate) struct TypeInfo {
    /// The element's name, or its text where it has none.
    pub(crate) name: String,
    /// Where in the allocation the data begin.
    pub(crate) data: usize,
    /// Bytes of an element.
    pub(crate) size: usize,
    parts: Vec<Part>,
}

/// Where pointers are in an element.
#[derive(Debug)]
enum Part {
    Pointer {
        offset: usize,
        is_weak: bool,
    },
    Row {
        offset: usize,
        stride: usize,
        count: usize,
        parts: Vec<Part>,
    },
}

/// A type that the program has a descriptor of.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) info: &'static TypeInfo,
    pub(crate) description: Description,
    /// Covers names, widths and signedness of the element, and of what its pointers lead to.
    pub(crate) checksum: u64,
    pub(crate) align: usize,
    /// As the program has it: what lies at the address of an unloaded library's descriptor may be another one now.
    text: String,
}

impl Declared {
    /// The types of allocations that it leads to, itself the first, by the names of their elements. What cannot be
    /// allocated is none.
    pub(crate) fn reached(&self) -> Vec<(String, Description)> {
        let Ok(Head { element, align, .. }) = Head::of(&self.text) else {
            return Vec::new();
        };
        let lines = (0..element.lines()).filter_map(|line| element.target(line).ok());
        let found = lines.enumerate().filter_map(|(line, element)| {
            let layout = convert(element.root()).ok()?.layout().ok()?;
            let align = if line == 0 { align } else { layout.align };
            let whole = allocation(&element, layout.size, align).ok()?;
            Some((short_name(&element), Description::from_descriptor(&whole)))
        });
        found.collect()
    }
}

impl TypeInfo {
    /// Whether an element holds pointers.
    #[inline]
    pub(crate) fn has_pointers(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Visits the pointers, of `count` elements in a row, that have a byte in `window`; offsets count from the first
    /// element. Tells for each whether it is weak.
    pub(crate) fn pointers(
        &self,
        count: usize,
        window: Range<usize>,
        visit: &mut impl FnMut(usize, bool),
    ) {
        if self.has_pointers() {
            visit_row(0, self.size, count, &self.parts, &window, visit);
        }
    }

    /// From the descriptor of a whole allocation, or `None` if it is none of NVL-C's.
    fn of(descriptor: &Descriptor) -> Option<Self> {
        let Type::Struct(Struct { name, fields, .. }) = descriptor.root() else {
            return None;
        };
        let name = name.strip_prefix("nvl ")?;
        let data = fields.iter().find(|field| field.name == "data")?;
        let Type::Array { element, .. } = &data.ty else {
            return None;
        };
        let mut parts = Vec::new();
        collect_parts(element, 0, &mut parts)?;
        Some(Self {
            name: name.to_owned(),
            data: usize::try_from(data.offset).ok()?,
            size: usize::try_from(element.layout().ok()?.size).ok()?,
            parts,
        })
    }
}

fn collect_parts(ty: &Type<usize>, base: usize, parts: &mut Vec<Part>) -> Option<()> {
    match ty {
        Type::Pointer { target, .. } => parts.push(Part::Pointer {
            offset: base,
            // Only proxies are pointed to by name.
            is_weak: target.is_some(),
        }),
        Type::Struct(Struct { fields, .. }) => {
            for field in fields {
                collect_parts(&field.ty, base + usize::try_from(field.offset).ok()?, parts)?;
            }
        }
        Type::Array {
            element,
            count: Count::Fixed(count),
        } => {
            let mut inner = Vec::new();
            collect_parts(element, 0, &mut inner)?;
            if !inner.is_empty() {
                parts.push(Part::Row {
                    offset: base,
                    stride: usize::try_from(element.layout().ok()?.size).ok()?,
                    count: usize::try_from(*count).ok()?,
                    parts: inner,
                });
            }
        }
        _ => {}
    }
    Some(())
}

fn visit_row(
    base: usize,
    stride: usize,
    count: usize,
    parts: &[Part],
    window: &Range<usize>,
    visit: &mut impl FnMut(usize, bool),
) {
    let first = window.start.saturating_sub(base) / stride;
    let last = window.end.saturating_sub(base).div_ceil(stride).min(count);
    for index in first..last {
        let base = base + index * stride;
        for part in parts {
            match *part {
                Part::Pointer { offset, is_weak } => {
                    let at = base + offset;
                    if at < window.end && window.start < at + 8 {
                        visit(at, is_weak);
                    }
                }
                Part::Row {
                    offset,
                    stride,
                    count,
                    ref parts,
                } => visit_row(base + offset, stride, count, parts, window, visit),
            }
        }
    }
}

/// The type of the pool's root object.
pub(crate) fn heap_type() -> &'static Description {
    static TYPE: OnceLock<Description> = OnceLock::new();
    TYPE.get_or_init(|| own_type(Descriptor::parse(HEAP_TYPE)))
}

/// The type of a proxy.
pub(crate) fn proxy_type() -> &'static Description {
    static TYPE: OnceLock<Description> = OnceLock::new();
    TYPE.get_or_init(|| own_type(proxy().and_then(|known| known.resolve(PROXY))))
}

fn own_type(descriptor: Result<Descriptor, TypeError>) -> Description {
    match descriptor {
        Ok(descriptor) => Description::from_descriptor(&descriptor),
        Err(error) => fatal!(
            Location::UNKNOWN,
            "internal error: {error}; please report it"
        ),
    }
}

/// Declarations with that of a proxy.
pub(crate) fn proxy() -> Result<Declarations, TypeError> {
    let fields = vec![
        Field::new("target", 0, weak_to_any()),
        word("count", 8),
        Field::new("next", 16, Type::pointer(PROXY)),
    ];
    let mut declarations = Declarations::new();
    declarations.declare(Type::structure(PROXY, 24, 8, fields))?;
    Ok(declarations)
}

fn weak_to_any() -> Type<String> {
    Type::Pointer {
        strength: Strength::Weak,
        target: None,
    }
}

fn word(name: &str, offset: u64) -> Field<String> {
    Field::new(name, offset, Type::Primitive(Primitive::U64))
}

thread_local! {
    /// The descriptor that the thread used last, and its address.
    static RECENT: Cell<Option<(usize, &'static Declared)>> = const { Cell::new(None) };
}

/// The type of a descriptor in compiled code.
///
/// # Safety
/// A string that does not change meanwhile.
pub(crate) unsafe fn declared(descriptor: *const c_char, at: Location) -> &'static Declared {
    if descriptor.is_null() {
        fatal!(at, "a type without a descriptor");
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(descriptor) };
    if let Some((address, recent)) = RECENT.get()
        && address == descriptor.addr()
        && recent.text.as_bytes() == text.to_bytes()
    {
        return recent;
    }
    static KNOWN: Known<String, Declared> = Known::new();
    let Ok(text) = text.to_str() else {
        fatal!(at, "a descriptor that is not UTF-8");
    };
    let found = KNOWN.get(text).unwrap_or_else(|| match declare(text) {
        Ok(declared) => KNOWN.enter(text.to_owned(), declared),
        Err(reason) => fatal!(
            at,
            "the descriptor of a type cannot be used: {reason}\n{text}"
        ),
    });
    RECENT.set(Some((descriptor.addr(), found)));
    found
}

/// What a descriptor in compiled code says.
pub(crate) struct Head {
    pub(crate) size: u64,
    pub(crate) align: u64,
    pub(crate) checksum: u64,
    pub(crate) element: Descriptor,
}

impl Head {
    /// Reads `nvl1 SIZE ALIGN CHECKSUM`, a line feed, and the element's text.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        let (head, element) = text.split_once('\n').ok_or("it has one line")?;
        let mut words = head.split(' ');
        if words.next() != Some("nvl1") {
            return Err("it does not begin with \"nvl1\"".into());
        }
        let mut word = || words.next().ok_or("its first line is too short");
        let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
        let (size, align) = (number(word()?)?, number(word()?)?);
        let checksum = u64::from_str_radix(word()?, 16).map_err(|error| error.to_string())?;
        let element = Descriptor::parse(element).map_err(|error| error.to_string())?;
        if !align.is_power_of_two() || align > ALIGN_MAX {
            return Err(format!("an alignment of {align}"));
        }
        Ok(Self {
            size,
            align,
            checksum,
            element,
        })
    }
}

fn declare(text: &str) -> Result<Declared, String> {
    let Head {
        size,
        align,
        checksum,
        element,
    } = Head::of(text)?;
    let whole = allocation(&element, size, align)?;
    let info = TypeInfo::of(&whole).ok_or("it is no type that can be allocated")?;
    Ok(Declared {
        info: known(whole.id(), || Some(info)).ok_or("internal error")?,
        description: Description::from_descriptor(&whole),
        checksum,
        align: align.max(ALIGN_MIN) as usize,
        text: text.to_owned(),
    })
}

/// The descriptor of allocations whose elements have this one.
pub(crate) fn allocation(
    element: &Descriptor,
    size: u64,
    align: u64,
) -> Result<Descriptor, String> {
    let text = |error: TypeError| error.to_string();
    let converted = convert(element.root())?;
    let layout = converted.layout().map_err(text)?;
    if layout.size != size || layout.has_tail {
        return Err(format!(
            "{} bytes by its text, {size} by its head",
            layout.size
        ));
    }
    let name = short_name(element);
    let align = align.max(ALIGN_MIN);
    let data = (HEADER as u64).next_multiple_of(align);
    let fields = vec![
        word("count", 0),
        Field::new("next", 8, Type::pointer_to_any()),
        Field::new("previous", 16, weak_to_any()),
        Field::new("weak", 24, Type::pointer(PROXY)),
        word("strong", 32),
        word("state", 40),
        Field::new("data", data, converted.array(Count::Field("count".into()))),
    ];
    let whole_name = format!("nvl {name}");
    let mut declarations = proxy().map_err(text)?;
    declarations
        .declare(Type::structure(&whole_name, data, align, fields))
        .map_err(text)?;
    declarations.resolve(&whole_name).map_err(text)
}

/// What names the type in messages and in the store. Names are at most 255 bytes without quotes.
pub(crate) fn short_name(element: &Descriptor) -> String {
    if let Some(name) = element.name()
        && name.len() <= 200
    {
        return name.to_owned();
    }
    let line = element.text().lines().next().unwrap_or_default();
    let plain: String = line
        .chars()
        .filter(|&c| c != '"' && c != '\\' && !c.is_control())
        .collect();
    match plain.len() {
        0..=200 => plain,
        _ => format!("type {:016x}", element.id()),
    }
}

/// An element's type as part of an allocation: without names in pointers, and without arrays whose end is open.
pub(crate) fn convert(ty: &Type<usize>) -> Result<Type<String>, String> {
    Ok(match ty {
        Type::Primitive(primitive) => Type::Primitive(*primitive),
        Type::Pointer {
            strength: Strength::Strong,
            ..
        } => Type::pointer_to_any(),
        Type::Pointer { .. } => Type::pointer(PROXY),
        Type::Struct(Struct {
            name,
            was,
            size,
            align,
            fields,
        }) => {
            let mut converted = Vec::with_capacity(fields.len());
            for field in fields {
                if let Some(ty) = convert_field(field, *size)? {
                    converted.push(Field {
                        name: field.name.clone(),
                        was: field.was.clone(),
                        offset: field.offset,
                        ty,
                        is_in_reserved: field.is_in_reserved,
                    });
                }
            }
            Type::Struct(Struct {
                name: name.clone(),
                was: was.clone(),
                size: *size,
                align: *align,
                fields: converted,
            })
        }
        Type::Array {
            element,
            count: Count::Fixed(count),
        } => convert(element)?.array(Count::Fixed(*count)),
        Type::Opaque { size, align } | Type::Volatile { size, align } => Type::Opaque {
            size: *size,
            align: *align,
        },
        Type::Reserved { size, align } => Type::Reserved {
            size: *size,
            align: *align,
        },
        other => return Err(format!("a part that C does not have: {other:?}")),
    })
}

/// A flexible array member has as many elements as fit into what `sizeof` says, mostly none.
fn convert_field(field: &Field<usize>, struct_size: u64) -> Result<Option<Type<String>>, String> {
    let Type::Array {
        element,
        count: Count::Tail,
    } = &field.ty
    else {
        return convert(&field.ty).map(Some);
    };
    let element = convert(element)?;
    let size = element.layout().map_err(|error| error.to_string())?.size;
    let room = struct_size.saturating_sub(field.offset);
    Ok(match room.checked_div(size) {
        None | Some(0) => None,
        Some(count) => Some(element.array(Count::Fixed(count))),
    })
}

/// What is known of the type with this id, or what `find` finds.
fn known(id: u64, find: impl FnOnce() -> Option<TypeInfo>) -> Option<&'static TypeInfo> {
    static KNOWN: Known<u64, TypeInfo> = Known::new();
    KNOWN.get(&id).or_else(|| Some(KNOWN.enter(id, find()?)))
}

/// What is known for good, by a key.
struct Known<K, V: 'static>(RwLock<Option<FxHashMap<K, &'static V>>>);

impl<K: Eq + Hash, V> Known<K, V> {
    const fn new() -> Self {
        Self(RwLock::new(None))
    }

    fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&'static V>
    where
        K: Borrow<Q>,
    {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref()?.get(key).copied()
    }

    /// Another thread may have been faster: then its value stays.
    fn enter(&self, key: K, value: V) -> &'static V {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default().entry(key);
        known.or_insert_with(|| Box::leak(Box::new(value)))
    }
}

thread_local! {
    /// The type of the object that the thread looked at last.
    static RECENT_ID: Cell<Option<(u64, &'static TypeInfo)>> = const { Cell::new(None) };
}

/// The type of allocations with this id, or `None` if objects of it are no allocations of NVL-C.
#[inline]
pub(crate) fn by_id(store: &Store, id: u64) -> Option<&'static TypeInfo> {
    match RECENT_ID.get() {
        Some((recent, info)) if recent == id => Some(info),
        _ => {
            let info = known(id, || {
                let text = store.type_text(id).ok()??;
                TypeInfo::of(&Descriptor::parse(&text).ok()?)
            })?;
            RECENT_ID.set(Some((id, info)));
            Some(info)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, count: usize, window: Range<usize>) -> Vec<(usize, bool)> {
        let declared = declare(text).unwrap();
        let mut found = Vec::new();
        let info = declared.info;
        info.pointers(count, window, &mut |at, is_weak| found.push((at, is_weak)));
        found
    }

    const NODE: &str = "nvl1 32 8 0000000000000007\nstruct \"node\"(32,8){0:\"value\":i64;8:\"next\":*0;16:\"pair\":[~0;2];}\n";

    #[test]
    fn pointers_are_found_by_element_and_by_window() {
        let all = [
            (8, false),
            (16, true),
            (24, true),
            (40, false),
            (48, true),
            (56, true),
        ];
        assert_eq!(found(NODE, 2, 0..64), all);
        assert_eq!(
            found(NODE, 2, 20..48),
            [(16, true), (24, true), (40, false)]
        );
        assert_eq!(found(NODE, 2, 8..9), [(8, false)]);
        assert_eq!(found(NODE, 2, 0..8), []);
        assert_eq!(found(NODE, 0, 0..64), []);
    }

    #[test]
    fn rows_in_rows_and_flexible_members() {
        let text = "nvl1 104 8 1\nstruct \"rows\"(104,8){0:\"a\":[[*1;3];2];48:\"b\":[struct \"rows.b\"(16,8){0:\"c\":i8;8:\"d\":*0;};3];96:\"n\":i64;104:\"tail\":[*0;tail];}\ni32\n";
        let offsets: Vec<_> = found(text, 1, 0..104).into_iter().map(|at| at.0).collect();
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 56, 72, 88]);
        assert_eq!(found("nvl1 4 4 1\nf32\n", 1000, 0..4000), []);
        assert_eq!(
            found("nvl1 8 8 1\n*1\ni32\n", 2, 0..16),
            [(0, false), (8, false)]
        );
    }

    #[test]
    fn what_cannot_be_allocated_is_refused() {
        for text in [
            "",
            "nvl1 4 4 1",
            "nvl2 4 4 1\ni32\n",
            "nvl1 8 4 1\ni32\n",
            "nvl1 4 3 1\ni32\n",
            "nvl1 4 4\ni32\n",
            "nvl1 4 4 1\nxyz\n",
        ] {
            assert!(declare(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_data_are_aligned() {
        let aligned = declare("nvl1 64 64 1\nstruct \"wide\"(64,64){0:\"x\":i32;}\n").unwrap();
        assert_eq!((aligned.info.data, aligned.align), (64, 64));
        let plain = declare(NODE).unwrap();
        assert_eq!((plain.info.data, plain.align, plain.checksum), (48, 16, 7));
        assert_eq!(plain.info.name, "node");
    }
}
