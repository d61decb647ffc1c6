//! What functions of a migration have at hand, and which parts of old values are parts of new ones.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::rc::Rc;

use durum_format::types::Descriptor;

use super::collections::{PBTreeMap, PHashMap, PString, PVec};
use super::counted::{Counted, Counting, PWeak};
use super::pbox::Pbox;
use super::pcell::PCell;
use super::pmutex::PMutex;
use super::pool_type::PoolType;
use super::prefcell::PRefCell;
use super::psafe::{InOption, PSafe};
use super::reading::Reading;
use crate::described::Described;

/// Set in pointers that are carried over, until the object is made: nothing is mapped there, so whoever follows one
/// ends the program, and reads no object as what it is not yet.
const CARRIED: u64 = 1 << 63;

/// Says that a function of a migration runs: it makes the cells of new values, and carries pointers over from old ones.
///
/// No transaction on the new pool runs, and none can begin. What is carried over cannot be followed, nor dropped: it is
/// moved to its place in the new value.
#[derive(Debug)]
pub struct Migrating<P> {
    layouts: RefCell<HashMap<TypeId, Rc<Descriptor>>>,
    _pool: PhantomData<(*mut (), P)>,
}

impl<P: PoolType> Migrating<P> {
    pub(super) fn new() -> Self {
        Self {
            layouts: RefCell::default(),
            _pool: PhantomData,
        }
    }

    /// The same as it was, in the new value: a pointer to the same object where that is now, a collection with the same
    /// elements, a cell with the same value.
    ///
    /// A pointer that owns something is carried over once, from the object that has it; the migration is refused
    /// otherwise. What it leads to becomes what the migration says.
    pub fn carry<A: CarryTo<B>, B: PSafe>(&self, old: &A) -> B {
        const {
            assert!(
                size_of::<A>() == size_of::<B>() && align_of::<A>() == align_of::<B>(),
                "what is carried over is as large as it was"
            );
        };
        let layout = self.layout_of::<A>();
        let mut bytes = MaybeUninit::<B>::uninit();
        // SAFETY: as many bytes, of a value that lives; `CarryTo` promises that they are a value of `B`.
        unsafe {
            std::ptr::copy_nonoverlapping(
                std::ptr::from_ref(old).cast::<u8>(),
                bytes.as_mut_ptr().cast::<u8>(),
                size_of::<A>(),
            );
        }
        let mut mark = |offset: u64, change: fn(u64) -> u64| {
            // SAFETY: the descriptor of the type names words inside of it.
            unsafe {
                let word = bytes.as_mut_ptr().byte_add(offset as usize).cast::<u64>();
                word.write_unaligned(change(word.read_unaligned()));
            }
        };
        // SAFETY: only those bytes are read that the descriptor names: tags and lengths, of which `CarryTo` has none.
        let seen = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(old).cast::<u8>(), size_of::<A>())
        };
        let fits = layout.visit_pointers(seen, |pointer| {
            mark(
                pointer.offset,
                |word| if word == 0 { 0 } else { word | CARRIED },
            );
        });
        let words = layout.visit_volatile(seen, |word| mark(word.offset, |_| 0));
        assert!(fits.is_ok() && words.is_ok(), "a value fits its type");
        // SAFETY: `CarryTo`; a pointer that is marked is a pointer to nothing, which nobody follows.
        unsafe { bytes.assume_init() }
    }

    /// A cell with this value: [`PCell`], [`PRefCell`] or [`PMutex`].
    pub fn cell<T: PSafe, C: CellOf<T>>(&self, value: T) -> C {
        C::with_value(value)
    }

    /// The proof that the old pool is read only, for what is read by it.
    ///
    /// # Panics
    /// If another pool is open under its type.
    pub fn reading<Old: PoolType>(&self) -> &Reading<Old> {
        let is_open = Old::binding().serial() != 0;
        assert!(!is_open, "a pool is open under the type of the old one");
        Reading::promised()
    }

    pub(super) fn layout_of<T: Described>(&self) -> Rc<Descriptor> {
        let mut layouts = self.layouts.borrow_mut();
        let layout = layouts
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Rc::new(descriptor_of::<T>()));
        layout.clone()
    }
}

/// The descriptor of a type.
pub(super) fn descriptor_of<T: Described>() -> Descriptor {
    match Descriptor::parse(T::description().text()) {
        Ok(descriptor) => descriptor,
        _ => panic!(
            "the description of {} is not usable",
            std::any::type_name::<T>()
        ),
    }
}

/// Takes the mark from a pointer that was carried over; nothing for any other.
pub(super) fn unmarked(word: u64) -> Option<u64> {
    (word & CARRIED != 0).then_some(word & !CARRIED)
}

/// What [`Migrating::carry`] carries over, and what it becomes.
///
/// # Safety
/// The bytes of a value are one of `New`, which has pointers of the same kinds at the same places, but for where they
/// lead.
pub unsafe trait CarryTo<New: PSafe>: PSafe {}

macro_rules! carried {
    ($([$($generics:tt)*] $old:ty => $new:ty;)*) => { $(
        // SAFETY: one type of handle or collection, of other elements.
        unsafe impl<$($generics)* Q: PoolType, P: PoolType> CarryTo<$new> for $old {}
    )* };
}

carried! {
    [A: PSafe, B: PSafe,] Pbox<A, Q> => Pbox<B, P>;
    [A: PSafe, B: PSafe, K: Counting,] Counted<A, Q, K> => Counted<B, P, K>;
    [A: PSafe, B: PSafe, K: Counting,] PWeak<A, Q, K> => PWeak<B, P, K>;
    [A: PSafe, B: PSafe,] PVec<A, Q> => PVec<B, P>;
    [] PString<Q> => PString<P>;
    [A: PSafe, B: PSafe, C: PSafe, D: PSafe,] PHashMap<A, C, Q> => PHashMap<B, D, P>;
    [A: PSafe, B: PSafe, C: PSafe, D: PSafe,] PBTreeMap<A, C, Q> => PBTreeMap<B, D, P>;
    [A: CarryTo<B>, B: PSafe,] PCell<A, Q> => PCell<B, P>;
    [A: CarryTo<B>, B: PSafe,] PRefCell<A, Q> => PRefCell<B, P>;
    [A: CarryTo<B>, B: PSafe,] PMutex<A, Q> => PMutex<B, P>;
}

// SAFETY: a handle, or zero; or a value without pointers that stays what it is.
unsafe impl<A: CarryTo<B> + InOption, B: PSafe + InOption> CarryTo<Option<B>> for Option<A> {}
// SAFETY: as each element.
unsafe impl<A: CarryTo<B>, B: PSafe, const N: usize> CarryTo<[B; N]> for [A; N] {}

macro_rules! plain {
    ($($type:ty),*) => { $(
        // SAFETY: the same.
        unsafe impl CarryTo<$type> for $type {}
    )* };
}

plain! { u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, bool, char }

/// A cell that [`Migrating::cell`] makes.
pub trait CellOf<T: PSafe>: PSafe {
    #[doc(hidden)]
    fn with_value(value: T) -> Self;
}

macro_rules! cells {
    ($($cell:ident),*) => { $(
        impl<T: PSafe, P: PoolType> CellOf<T> for $cell<T, P> {
            fn with_value(value: T) -> Self {
                Self::with(value)
            }
        }
    )* };
}

cells! { PCell, PRefCell, PMutex }
