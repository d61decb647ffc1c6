//! How the compiler lays out an `Option` of a value without pointers, found by values that it makes.
//!
//! Rust promises little of it: that the value lies in it as a whole, and that some bytes tell whether there is one.
//! Which ones differs from compiler to compiler: from 1.97 on a `None` of a `char` has other bits. Two ways are known.
//! Where the option is larger than its value, a number stands before the value. Where it is as large, some number in
//! the value, of which not all bits are values (a `bool`, a `char`, the tag of an enum), has bits of its own for
//! `None`. Which number that is shows when that of a `None` is put into a `Some`: the option that comes of it is none
//! if it is the one, and as before otherwise. Only that is asked of it. Bytes that are not initialized are copied as
//! such and never read, as those that tell are initialized in every option. Anything that is not of these two ways is
//! described as bytes.

use std::mem::MaybeUninit;
use std::{ptr, slice};

use durum_format::types::{Case, Count, Field, Primitive, Struct, Type, Variants};

/// Larger options are described as bytes: values of them are made on the stack.
pub(super) const SIZE_MAX: usize = 1 << 14;

/// The description, under a name, of an `Option` of a `T`: `value` is the description of that, and `any` some value.
pub(super) fn of<T>(name: String, value: Type<String>, any: T) -> Option<Type<String>> {
    let size = size_of::<Option<T>>();
    let probe = Probe::new(any)?;
    let (tag_offset, tag_width) = match size > size_of::<T>() {
        true => (0, probe.width_before_value()?),
        false => {
            let places = places(&value).into_iter();
            only(places.filter(|place| probe.is_none_with(*place)))?
        }
    };
    // SAFETY: the compiler is taken to tell by one number, all of which is written in any option; this one alone made a
    // `None` of a `Some`, and its width is that of a number in the value, or of all that the compiler would take.
    let number = |of| unsafe { number(of, tag_offset, tag_width) };
    let (none, some) = (number(&probe.none), number(&probe.some));
    // All else beside the value is zero in what is made by the description.
    if size > size_of::<T>() && (none, some) != (0, 1) {
        return None;
    }
    let case = |discriminant, name: &str, fields| Case {
        discriminant,
        name: name.to_owned(),
        was: Vec::new(),
        fields,
    };
    let some = (size > size_of::<T>()).then_some(some);
    let field = Field::new("0", probe.value_at as u64, value);
    Some(Type::Variants(Variants {
        name,
        was: Vec::new(),
        size: size as u64,
        align: align_of::<Option<T>>() as u64,
        tag_offset: tag_offset as u64,
        tag_width: tag_width as u64,
        cases: vec![
            case(Some(none), "None", Vec::new()),
            case(some, "Some", vec![field]),
        ],
    }))
}

/// An option of each kind.
struct Probe<T> {
    none: MaybeUninit<Option<T>>,
    some: MaybeUninit<Option<T>>,
    /// Where the value lies.
    value_at: usize,
}

impl<T> Probe<T> {
    fn new(any: T) -> Option<Self> {
        let some = Some(any);
        let value = some.as_ref().map(|value| ptr::from_ref(value).addr())?;
        let value_at = value - ptr::from_ref(&some).addr();
        Some(Self {
            none: MaybeUninit::new(None),
            some: MaybeUninit::new(some),
            value_at,
        })
    }

    /// Whether the `Some` is none once so many bytes of the `None` are in it.
    #[allow(
        clippy::redundant_pattern_matching,
        reason = "the call would make a reference to what may be no value"
    )]
    fn is_none_with(&self, (offset, width): (usize, usize)) -> bool {
        let mut mixed = MaybeUninit::<Option<T>>::uninit();
        let to = bytes_mut(&mut mixed);
        to.copy_from_slice(bytes(&self.some));
        let place = offset..offset + width;
        let (Some(to), Some(from)) = (to.get_mut(place.clone()), bytes(&self.none).get(place))
        else {
            return false;
        };
        to.copy_from_slice(from);
        // SAFETY: only the bytes are read that tell whether there is a value. All of them are those of one of the two:
        // what was put in has all of them, or none.
        unsafe { matches!(*mixed.as_ptr(), None) }
    }

    /// The bytes of the number before the value that tells.
    fn width_before_value(&self) -> Option<usize> {
        let size = size_of::<Option<T>>();
        let before = match size_of::<T>() {
            0 => size,
            _ => self.value_at,
        };
        if before == 0 || !self.is_none_with((0, before)) {
            return None;
        }
        // Cases that take 255 more of its numbers have room in two bytes, and in one they have not. Of the sizes above
        // one the compiler takes that of the place.
        let is_wide = size_of::<Many<Option<T>>>() == size;
        match (is_wide, before) {
            (true, 2 | 4 | 8) => Some(before),
            (true, _) => None,
            (false, _) => self.is_none_with((0, 1)).then_some(1),
        }
    }
}

/// A value or one of fifteen others.
#[allow(dead_code, reason = "it is there to be laid out")]
#[rustfmt::skip]
enum Others<T> { Value(T), A, B, C, D, E, F, G, H, I, J, K, L, M, N, O }

type Four<T> = Others<Others<Others<Others<T>>>>;

/// A value or one of 255 others.
type Many<T> = Others<Four<Four<Four<Four<T>>>>>;

/// The bytes of a value, initialized or not.
fn bytes<T>(of: &MaybeUninit<T>) -> &[MaybeUninit<u8>] {
    // SAFETY: it has as many, and any are a `MaybeUninit`.
    unsafe { slice::from_raw_parts(of.as_ptr().cast(), size_of::<T>()) }
}

fn bytes_mut<T>(of: &mut MaybeUninit<T>) -> &mut [MaybeUninit<u8>] {
    // SAFETY: as before; whatever is written there is a `MaybeUninit`.
    unsafe { slice::from_raw_parts_mut(of.as_mut_ptr().cast(), size_of::<T>()) }
}

/// The number at a place of an option.
///
/// # Safety
/// It is initialized.
unsafe fn number<T>(of: &MaybeUninit<Option<T>>, offset: usize, width: usize) -> u64 {
    let mut word = [0; 8];
    let place = bytes(of).get(offset..offset + width).unwrap_or_default();
    for (to, from) in word.iter_mut().zip(place) {
        // SAFETY: as the caller says.
        *to = unsafe { from.assume_init() };
    }
    u64::from_le_bytes(word)
}

fn only<I>(mut items: impl Iterator<Item = I>) -> Option<I> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// The numbers in a value of which not all bits are values: where, and how wide.
fn places(value: &Type<String>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    add_places(value, 0, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

fn add_places(value: &Type<String>, base: u64, found: &mut Vec<(usize, usize)>) {
    match value {
        Type::Primitive(number @ (Primitive::Bool | Primitive::Char)) => {
            found.push((base as usize, number.size() as usize));
        }
        Type::Struct(Struct { fields, .. }) => {
            let fields = fields.iter();
            fields.for_each(|field| add_places(&field.ty, base + field.offset, found));
        }
        // Those in the fields of its cases are not there in each value.
        Type::Variants(it) => {
            found.push(((base + it.tag_offset) as usize, it.tag_width as usize));
        }
        // The compiler takes bits of the first, if there is one: else another number can lie there.
        Type::Array {
            element,
            count: Count::Fixed(1..),
        } => add_places(element, base, found),
        _ => {}
    }
}
