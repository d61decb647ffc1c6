//! Heaps of NVL-C: what their runtime keeps beside the program's data is made anew.
//!
//! Strong pointers lead into the data of allocations, or right behind them, and weak ones to proxies, which say where
//! to. Each allocation has its count in a header, each proxy the number of weak pointers. What no strong pointer leads
//! to is on the zero list, and goes when the heap is opened: nothing volatile leads there.

use durum_format::extent::HeapBytes;
use durum_format::migrate::{Conversion, Refusal};
use durum_format::nvl::{
    self, Elements, HeapRoot, Kind, LINK, LISTED, PINNED, Proxy, VERSION, element,
};
use durum_format::types::{Descriptor, PointerAt, Strength, ValueError};

use super::NewHeap;
use super::leads::Lead;
use super::old::{Kinds, Old};
use super::table::Table;
use super::visit::Visit;
use crate::dump::numbers::Found;
use crate::error::Result;
use crate::roles::word_at;

/// Places of the words that are neither counts nor links.
const ROOT: u64 = std::mem::offset_of!(HeapRoot, root) as u64;
const WEAK: u64 = std::mem::offset_of!(nvl::Header, weak) as u64;
const TARGET: u64 = std::mem::offset_of!(Proxy, target) as u64;
const NEXT_PROXY: u64 = std::mem::offset_of!(Proxy, next) as u64;
/// Of counts and links.
const STRONG: u64 = std::mem::offset_of!(nvl::Header, strong) as u64;
const STATE: u64 = std::mem::offset_of!(nvl::Header, state) as u64;
const NEXT: u64 = std::mem::offset_of!(nvl::Header, next) as u64;
const PREVIOUS: u64 = std::mem::offset_of!(nvl::Header, previous) as u64;
const COUNT: u64 = std::mem::offset_of!(nvl::Header, count) as u64;
const WEAK_COUNT: u64 = std::mem::offset_of!(Proxy, count) as u64;
const ZERO: u64 = std::mem::offset_of!(HeapRoot, zero) as u64;
const CHECKSUM: u64 = std::mem::offset_of!(HeapRoot, checksum) as u64;

/// Visits the pointers of a new object that stay pointers, by its type and by what its elements lead to. What the zero
/// list has of it is none of them.
pub(super) fn visit_pointers(
    new: &Descriptor,
    kind: Kind,
    typed: Option<&Descriptor>,
    bytes: &[u8],
    visit: &mut impl FnMut(PointerAt),
) -> std::result::Result<(), ValueError> {
    let own = |offset, strength| PointerAt {
        offset,
        strength,
        target: None,
    };
    match kind {
        Kind::Heap => visit(own(ROOT, Strength::Strong)),
        Kind::Proxy => {
            visit(own(TARGET, Strength::Weak));
            visit(own(NEXT_PROXY, Strength::Strong));
        }
        Kind::Allocation(Elements { data, size }) => {
            visit(own(WEAK, Strength::Strong));
            let count = word_at(bytes, COUNT).unwrap_or(0);
            let end = usize::try_from(data.saturating_add(count.saturating_mul(size)));
            let typed = typed.filter(|it| !it.layout().has_tail && it.layout().size == size);
            let elements = end.ok().and_then(|end| bytes.get(data as usize..end));
            match (typed, elements) {
                (_, Some([])) => {}
                (Some(typed), Some(elements)) => typed.visit_pointers(elements, |pointer| {
                    visit(PointerAt {
                        offset: data + pointer.offset,
                        ..pointer
                    });
                })?,
                _ => new.visit_pointers(bytes, |pointer| {
                    if pointer.offset >= data {
                        // Only proxies are pointed to by name.
                        let is_weak = pointer.target.is_some();
                        let strength = if is_weak {
                            Strength::Weak
                        } else {
                            Strength::Strong
                        };
                        visit(own(pointer.offset, strength));
                    }
                })?,
            }
        }
    }
    Ok(())
}

/// Where a pointer of a new object leads to, and what it counts there.
pub(super) struct Led {
    pub(super) lead: Lead,
    /// The object, and whether its weak pointers are counted.
    pub(super) counted: Option<(u64, bool)>,
}

impl Led {
    fn refused(refusal: Refusal) -> Self {
        Self {
            lead: Lead::Refused(refusal),
            counted: None,
        }
    }
}

/// Follows a pointer of a new object, of which these are the bytes. It is the old one yet.
///
/// # Errors
/// `Io`.
pub(super) fn follow(
    old: &Old<'_>,
    (new, kind): (&Descriptor, Kind),
    bytes: &[u8],
    pointer: &PointerAt,
    address: u64,
) -> Result<Led> {
    let (to_proxy, counts) = match (kind, pointer.offset) {
        (Kind::Heap, _) => (false, true),
        (Kind::Proxy, TARGET) => (false, false),
        (Kind::Proxy, _) | (Kind::Allocation(_), WEAK) => (true, false),
        (Kind::Allocation(_), _) => (pointer.strength == Strength::Weak, true),
    };
    let nowhere = |what| {
        let is_field = matches!(kind, Kind::Allocation(_)) && pointer.offset != WEAK;
        let cure = match (is_field, to_proxy) {
            (true, false) => "set it to null before, or say that the field may be forgotten",
            // To be counted off it would have to lead to a proxy.
            (true, true) => "say that the field may be forgotten, or go back to a copy of the heap",
            (false, _) => "go back to a copy of the heap",
        };
        let place = leads_to(old, address, what);
        let why = format!(
            "{place}: the heap is damaged, as no program stores such a pointer by the runtime; {cure}"
        );
        let way = way_to(new, bytes, pointer.offset);
        Ok(Led::refused(Refusal::new(way, why)))
    };
    if to_proxy {
        let Some(index) = proxy(old, address) else {
            return nowhere("proxy");
        };
        return Ok(Led {
            lead: Lead::Object {
                index,
                offset: 0,
                tag: 0,
            },
            counted: counts.then_some((index, true)),
        });
    }
    let Some(inside) = Inside::of(old, address)? else {
        return nowhere("element of an allocation");
    };
    let wanted = old.typed(new.id()).zip(pointer.target);
    Ok(match inside.now(wanted) {
        Ok(offset) => {
            let Found { index, tag, .. } = inside.found;
            Led {
                lead: Lead::Object { index, offset, tag },
                counted: counts.then_some((index, false)),
            }
        }
        Err((path, why)) => {
            let why = format!("{why} (that of a {})", new.called());
            Led::refused(Refusal::new(path, why))
        }
    })
}

/// Where a pointer leads to that is none to `what`.
fn leads_to(old: &Old<'_>, address: u64, what: &str) -> String {
    let contents = old.reader.contents();
    let mut puddles = contents.puddles.values();
    let holds = |start: u64, size: u64| address.checked_sub(start).is_some_and(|at| at < size);
    let there = puddles.find(|puddle| holds(puddle.address, puddle.size));
    let owner = there.map(|puddle| puddle.owner);
    match owner {
        Some(owner) if old.pools.iter().any(|pool| pool.uuid == owner) => {
            format!("it leads to no {what}")
        }
        Some(owner) => match contents.pools.get(&owner) {
            Some(pool) => format!("it leads out of the heap, into pool \"{}\"", pool.name),
            None => "it leads out of the heap".to_owned(),
        },
        None => "it leads out of the heap, to nothing of the store".to_owned(),
    }
}

/// The way to a pointer of a new object. Without the numbers of elements: what many of them have is told once.
fn way_to(new: &Descriptor, bytes: &[u8], offset: u64) -> String {
    let mut way = new.called();
    let found = new.path(bytes, offset).map(|path| path.text);
    let mut parts = found.iter().flat_map(|text| text.split('['));
    if let Some(first) = parts.next() {
        way = format!("{way}.{first}");
    }
    for part in parts {
        way.push_str("[]");
        way.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    way
}

/// The proxy that begins at an address.
fn proxy(old: &Old<'_>, address: u64) -> Option<u64> {
    let found = old.numbers.object(address)?;
    let kinds = old.kinds(found.tag)?;
    (kinds.was == Kind::Proxy && found.offset == 0).then_some(found.index)
}

/// A place in the data of an allocation, or right behind them.
pub(super) struct Inside<'o> {
    pub(super) found: Found,
    was: Elements,
    is: Elements,
    conversion: &'o Conversion,
}

impl<'o> Inside<'o> {
    /// As the runtime finds it (`Heap::object` of durum-nvl): no pointer leads into a header, so one that seems to
    /// leads behind the allocation before it. Nor does one lead behind the elements that the header counts, where an
    /// allocation that is rounded up goes on.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn of(old: &'o Old<'_>, address: u64) -> Result<Option<Self>> {
        let at = |address| {
            let found = old.numbers.object(address)?;
            let Kinds {
                was: Kind::Allocation(was),
                is: Kind::Allocation(is),
            } = old.kinds(found.tag)?
            else {
                return None;
            };
            Some(Self {
                found,
                was,
                is,
                conversion: old.conversion(found.tag)?,
            })
        };
        let mut is_end = false;
        let mut inside = at(address).filter(|it| it.found.offset >= it.was.data);
        if inside.is_none() {
            inside = address.checked_sub(1).and_then(at);
            is_end = true;
        }
        let Some(mut inside) = inside else {
            return Ok(None);
        };
        inside.found.offset += u64::from(is_end);
        let Some(offset) = inside.found.offset.checked_sub(inside.was.data) else {
            return Ok(None);
        };
        // Where the first element begins, or would, needs no look at the header.
        let mut is_inside = offset == 0;
        if !is_inside {
            let end = inside
                .was
                .size
                .checked_mul(count_at(old, address - inside.found.offset)?);
            is_inside = end.is_some_and(|end| offset == end || (offset < end && !is_end));
        }
        Ok(is_inside.then_some(inside))
    }

    /// Where it is in the new allocation: the part of the type to which the pointer leads.
    fn now(
        &self,
        wanted: Option<(&Descriptor, usize)>,
    ) -> std::result::Result<u64, (String, &'static str)> {
        let offset = self.found.offset - self.was.data;
        if offset.is_multiple_of(self.was.size) && self.is_of_element(wanted) {
            return Ok(self.is.data + offset / self.was.size * self.is.size);
        }
        let followed = (self.conversion).follow(self.found.offset, wanted, &mut Vec::new);
        followed.map_err(|gone| (gone.path, gone.why))
    }

    /// Whether a pointer to the beginning of an element means that: nothing else, or nothing of another type, begins
    /// there.
    fn is_of_element(&self, wanted: Option<(&Descriptor, usize)>) -> bool {
        use durum_format::types::Type;
        let Some(wanted) = wanted.and_then(|(of, line)| of.line(line)) else {
            return true;
        };
        match element(self.conversion.new_type()) {
            Some(is @ Type::Struct(_)) => is.name() == wanted.name(),
            Some(Type::Array { .. }) | None => false,
            Some(_) => true,
        }
    }
}

/// The elements of the old allocation that begins at an address, as its header says.
fn count_at(old: &Old<'_>, address: u64) -> Result<u64> {
    let Some(view) = old.view_at(address) else {
        return Ok(0);
    };
    let mut word = [0; 8];
    view.read(address - view.header().address + COUNT, &mut word)?;
    Ok(u64::from_le_bytes(word))
}

/// What stands in the way of an object as a whole.
pub(super) fn of_object(visit: &Visit<'_>, kind: Kind) -> Option<Refusal> {
    if kind != Kind::Heap {
        return None;
    }
    if !visit.wanted.is_root {
        let why = "it is not the pool's root: the heap is damaged";
        return Some(Refusal::new("another heap", why));
    }
    let version = word_at(visit.bytes, 0).unwrap_or(0);
    let why = format!("the heap has layout {version}, and this version of durum has {VERSION}");
    (version != VERSION).then(|| Refusal::new("the heap", why))
}

/// Whether a weak pointer would be told apart from others to the same address, which have one proxy with it.
///
/// # Errors
/// `Io`.
fn of_weak(
    old: &Old<'_>,
    new: &Descriptor,
    pointer: &PointerAt,
    proxy: u64,
) -> Result<Option<Refusal>> {
    let Some(wanted) = old.typed(new.id()).zip(pointer.target) else {
        return Ok(None);
    };
    let Some(inside) = target_in(old, target_of(old, proxy)?)? else {
        return Ok(None);
    };
    let is_told_apart = inside.now(Some(wanted)) != inside.now(None);
    Ok(is_told_apart.then(|| {
        let path = inside.conversion.new_type().called();
        let why = format!(
            "a weak pointer of a {} leads to a part of it that begins where another one begins, and no more: make it null before",
            new.called()
        );
        Refusal::new(path, why)
    }))
}

/// What stands in the way of a proxy to which a pointer of a new object, which is the old one yet, leads.
///
/// # Errors
/// `Io`.
pub(super) fn of_proxy(
    old: &Old<'_>,
    visit: &Visit<'_>,
    pointer: &PointerAt,
    proxy: u64,
) -> Result<Option<Refusal>> {
    let Some(new) = visit.conversion.map(Conversion::new_type) else {
        return Ok(None);
    };
    let whose = match (visit.new_kind, pointer.offset) {
        (Some(Kind::Allocation(_)), WEAK) => Some(visit.index),
        (Some(Kind::Proxy), NEXT_PROXY) => {
            target_in(old, word_at(visit.bytes, TARGET))?.map(|inside| inside.found.index)
        }
        (Some(Kind::Allocation(_)), _) if pointer.strength == Strength::Weak => {
            return of_weak(old, new, pointer, proxy);
        }
        _ => return Ok(None),
    };
    let next = target_in(old, target_of(old, proxy)?)?.map(|inside| inside.found.index);
    // Those of an allocation are told when it is freed: by another one a weak pointer would outlive its target.
    let why = "the list of proxies for weak pointers to it has one for another allocation: the heap is damaged; go back to a copy of it";
    let is_same = whose.is_some() && whose == next;
    Ok((!is_same).then(|| Refusal::new(new.called(), why)))
}

/// Proxies that stand for something, and those to which links of lists lead: each hangs in one list, once, or would not
/// be told when its allocation goes.
#[derive(Default)]
pub(super) struct Hanging {
    proxies: Addresses,
    linked: Addresses,
}

/// Addresses of which one more, or another one, shows.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Addresses {
    count: u64,
    sum: u64,
}

impl Addresses {
    fn add(&mut self, address: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(address);
    }
}

impl Hanging {
    /// `pointers` are those of the new object.
    pub(super) fn see(&mut self, visit: &Visit<'_>, pointers: &[(PointerAt, u64)]) {
        let link = match visit.new_kind {
            Some(Kind::Allocation(_)) => WEAK,
            Some(Kind::Proxy) => NEXT_PROXY,
            _ => return,
        };
        let stands = word_at(visit.bytes, TARGET).is_some_and(|target| target != 0);
        if visit.new_kind == Some(Kind::Proxy) && stands {
            let address = visit.view.header().address + visit.object.offset;
            self.proxies.add(address);
        }
        let linked = pointers.iter().filter(|(it, _)| it.offset == link);
        linked.for_each(|(_, address)| self.linked.add(*address));
    }

    /// What stands in the way of all.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let why = format!(
            "not each of the {} proxies for weak pointers hangs once in the list of its allocation: the heap is damaged; go back to a copy of it",
            self.proxies.count
        );
        (self.proxies != self.linked).then(|| Refusal::new("the heap", why))
    }
}

/// What the proxy at an address stands for, or 0.
fn target_of(old: &Old<'_>, proxy: u64) -> Result<Option<u64>> {
    let Some(view) = old.view_at(proxy) else {
        return Ok(None);
    };
    let mut word = [0; 8];
    view.read(proxy - view.header().address + TARGET, &mut word)?;
    Ok(Some(u64::from_le_bytes(word)))
}

/// Where that is.
fn target_in<'o>(old: &'o Old<'_>, target: Option<u64>) -> Result<Option<Inside<'o>>> {
    match target {
        None | Some(0) => Ok(None),
        Some(target) => Inside::of(old, target),
    }
}

/// Whether an allocation may be on the zero list.
pub(super) fn may_be_listed(visit: &Visit<'_>, kind: Kind) -> bool {
    matches!(kind, Kind::Allocation(_)) && !is_pinned(visit.bytes)
}

/// No counts of pointers that come and go make that half of it.
fn is_pinned(old: &[u8]) -> bool {
    word_at(old, STRONG).is_some_and(|strong| strong >= PINNED / 2)
}

/// Puts counts and links into new objects, which come in their order.
#[derive(Default)]
pub(super) struct Links {
    /// The last one that the zero list has got.
    previous: u64,
}

impl Links {
    /// `to` tells where an object begins.
    pub(super) fn put(
        &mut self,
        visit: &Visit<'_>,
        (kind, heap): (Kind, &NewHeap),
        new: &mut [u8],
        table: &mut Table,
        to: impl Fn(&mut Table, u64) -> u64,
    ) {
        let link = |table: &mut Table, from: u64| match table.next_listed(from) {
            Some(index) => to(table, index) + LINK as u64,
            None => 0,
        };
        let (strong, weak) = table.counts(visit.index);
        match kind {
            Kind::Heap => {
                put(new, ZERO, link(table, 0));
                if word_at(new, ROOT) != Some(0) {
                    put(new, CHECKSUM, heap.checksum);
                }
            }
            Kind::Proxy => put(new, WEAK_COUNT, weak),
            Kind::Allocation(_) => {
                let is_pinned = is_pinned(visit.bytes);
                let is_listed = strong == 0 && !is_pinned;
                put(new, STRONG, strong + if is_pinned { PINNED } else { 0 });
                // What is made is durable, so nothing is fresh.
                put(new, STATE, if is_listed { LISTED } else { 0 });
                put(new, NEXT, 0);
                put(new, PREVIOUS, 0);
                if is_listed {
                    put(new, NEXT, link(table, visit.index + 1));
                    put(new, PREVIOUS, self.previous);
                    self.previous = to(table, visit.index) + LINK as u64;
                }
            }
        }
    }
}

/// Stores a word of a new object.
pub(super) fn put(bytes: &mut [u8], at: u64, word: u64) {
    let rest = bytes.get_mut(at as usize..);
    if let Some(place) = rest.and_then(|rest| rest.first_chunk_mut::<8>()) {
        *place = word.to_le_bytes();
    }
}
