//! Global variables that last: objects of the heap, found by their names.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use durum::Described;
use durum::primitive::locked;
use durum_persist::line;

use crate::fatal::{OrFatal, fatal};
use crate::heap::{self, Heap};
use crate::layout::Variable;
use crate::types::{self, UNKNOWN};

/// A variable (docs/reference/ido-ir.md).
#[derive(Debug)]
#[repr(C)]
pub struct Global {
    /// Null, until it is known.
    pub place: AtomicPtr<c_void>,
    /// With that of the file in front, if only the file knows it.
    pub name: *const c_char,
    /// The bytes of a new one; null if another file defines it.
    pub initial: *const c_void,
    /// Its bytes.
    pub size: u64,
    /// A power of two.
    pub align: u64,
    /// Its type (docs/format/types.md); null if that is not told.
    pub ty: *const c_char,
}

// SAFETY: constants but for the place, which is atomic.
unsafe impl Sync for Global {}

/// The variables that modules define.
static DEFINED: Mutex<Vec<&'static Global>> = Mutex::new(Vec::new());

/// Enters what a module defines.
///
/// # Safety
/// `count` pointers to variables, which stay as long as the program runs.
pub(crate) unsafe fn register(table: *const *const Global, count: u64) {
    let mut defined = locked(&DEFINED);
    for at in 0..count as usize {
        // SAFETY: as the caller promises.
        defined.push(unsafe { &**table.add(at) });
    }
}

/// Where the variable lies, if somebody has asked before.
#[inline]
pub(crate) fn known(global: &Global) -> Option<*mut c_void> {
    let place = global.place.load(Ordering::Acquire);
    (!place.is_null()).then_some(place)
}

/// Where the variable lies, which is made now if the heap has none of its name.
pub(crate) fn place(global: &Global) -> *mut c_void {
    static FINDING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = locked(&FINDING);
    // SAFETY: a string of the program's.
    let name = unsafe { CStr::from_ptr(global.name) }.to_bytes();
    check_name(global, name);
    let heap = heap::current();
    let place = find(heap, global, name).unwrap_or_else(|| make(heap, global, name));
    global.place.store(place, Ordering::Release);
    place
}

/// Forgets where variables lie: the heap is closed.
pub(crate) fn forget() {
    for global in locked(&DEFINED).iter() {
        global.place.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Of each module that defines it: one for a variable of one file, several for what the linker makes one.
fn definitions<'a>(
    defined: &'a [&'static Global],
    name: &'a [u8],
) -> impl Iterator<Item = &'static Global> + 'a {
    // SAFETY: strings of the program's.
    let is_it = move |other: &&Global| unsafe { CStr::from_ptr(other.name) }.to_bytes() == name;
    defined.iter().copied().filter(is_it)
}

/// Ends the program if the variable would be that of another file as well.
fn check_name(global: &Global, name: &[u8]) {
    let is_other = |other: &Global| !ptr::eq(other, global);
    if name.contains(&b':') && definitions(&locked(&DEFINED), name).any(is_other) {
        fatal!(
            "two files of one name have the variable {}, and the heap could not tell one from the other: rename one",
            String::from_utf8_lossy(name)
        );
    }
}

fn find(heap: &Heap, global: &Global, name: &[u8]) -> Option<*mut c_void> {
    // SAFETY: the root object; entries are only added, by one thread at a time.
    let mut next = unsafe { (*heap.root).globals };
    while !next.is_null() {
        let entry: *const Variable = ptr::with_exposed_provenance(next.addr());
        // SAFETY: an entry of the heap, behind which its name lies.
        let (entry, found) = unsafe {
            let bytes = entry.add(1).cast::<u8>();
            (
                &*entry,
                std::slice::from_raw_parts(bytes, (*entry).name_size as usize),
            )
        };
        if found == name {
            if entry.size != global.size {
                fatal!(
                    "the variable {} has {} bytes in the heap, and {} in this program",
                    String::from_utf8_lossy(name),
                    entry.size,
                    global.size
                );
            }
            let place = ptr::with_exposed_provenance_mut(entry.place.addr());
            check_type(heap, global, place, name);
            return Some(place.cast());
        }
        next = entry.next;
    }
    None
}

/// Ends the program if the variable has had another type.
fn check_type(heap: &Heap, global: &Global, place: *mut u8, name: &[u8]) {
    // SAFETY: an entry leads to an object of the heap; the type's text is the program's.
    let (found, id) = unsafe {
        (
            heap.pool.object_at(place),
            types::id_of(&heap.pool, global.ty),
        )
    };
    let Some(found) = found.or_fatal("looking at a variable that lasts") else {
        fatal!(
            "the heap has no object for the variable {}: it is damaged",
            String::from_utf8_lossy(name)
        );
    };
    if id != UNKNOWN && found.type_id != UNKNOWN && found.type_id != id {
        fatal!(
            "the variable {} has another type in the heap than in this program: run the one that has made it, or give it another name",
            String::from_utf8_lossy(name)
        );
    }
}

fn make(heap: &Heap, global: &Global, name: &[u8]) -> *mut c_void {
    let mut initial = global.initial.cast::<u8>();
    if initial.is_null() {
        initial = match definitions(&locked(&DEFINED), name).next() {
            Some(defined) => defined.initial.cast(),
            None => fatal!(
                "no file defines the variable {}",
                String::from_utf8_lossy(name)
            ),
        };
    }
    let (root, size) = (heap.root, global.size as usize);
    // SAFETY: the type's text is the program's.
    let type_id = unsafe { types::id_of(&heap.pool, global.ty) };
    let made = heap.pool.transaction(|tx| {
        let align = (global.align as usize).clamp(16, 4096);
        let place = tx.alloc_bytes(&heap.pool, type_id, size.max(1), align)?;
        let entry_size = size_of::<Variable>() + name.len();
        let entry_type = heap.pool.ensure_described(Variable::description())?;
        let entry = tx.alloc_bytes(&heap.pool, entry_type, entry_size, 16)?;
        // SAFETY: just allocated; the root object is changed by one thread at a time.
        unsafe {
            line::copy(place, initial, size);
            let written = entry.cast::<Variable>();
            written.write(Variable {
                next: (*root).globals,
                place,
                size: global.size,
                name_size: name.len() as u64,
            });
            line::copy(entry.add(size_of::<Variable>()), name.as_ptr(), name.len());
            place.expose_provenance();
            entry.expose_provenance();
            tx.set(&raw mut (*root).globals, written)?;
        }
        Ok::<_, durum::Error>(place)
    });
    made.or_fatal("making a global variable that lasts").cast()
}
