//! Pools that are made anew under other types.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};

use client::migration::{ByProgram, Make, MigrateOptions, NewTypes};
use durum_format::migrate::{MadeBy, Rule, Rules};

use crate::guard::{Failure, Result, status, string};
use crate::store::path;
use crate::types::TypeDeclaration;

/// Nothing is written: what stands in the way is told.
pub const DURUM_MIGRATE_PLAN: u32 = 1;
/// Objects without a known type hold no pointers, and stay as they are.
pub const DURUM_MIGRATE_UNTYPED_HOLD_NO_POINTERS: u32 = 2;

/// What becomes of a type in durum_pool_migrate and durum_pools_migrate.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MigratedType {
    /// The type as the pool has it: DURUM_TYPE_OF of a struct that is declared as the earlier version declared it.
    pub was: *mut TypeDeclaration,
    /// What it becomes.
    pub now: *mut TypeDeclaration,
    /// Makes the new value, all of which is zero before, of the old one. Pointers are copied as they are, those that
    /// own something once each; they follow later. It may look at whatever the old value leads to, is asked twice for
    /// each object, and makes the same both times. A result other than 0 refuses the migration. NULL: fields are those
    /// of the same names.
    pub make: Option<
        unsafe extern "C" fn(was: *const c_void, now: *mut c_void, argument: *mut c_void) -> c_int,
    >,
    /// What `make` gets besides.
    pub argument: *mut c_void,
}

/// A pool in durum_pools_migrate.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MigratedPool {
    /// Its name.
    pub name: *const c_char,
    /// What the type of its root becomes.
    pub root: *mut TypeDeclaration,
}

/// Makes a pool anew in the store directory `store`, which nobody has open: every object becomes what the types of the
/// program say there, which begin with that of the root (`root`), and what `types` say besides (`count` of them), in
/// which a type lies that the root does not lead to, too. Fields are found by their names, or former ones. Pointers of
/// all kinds lead to where things are then. `flags` are DURUM_MIGRATE_* in any combination.
///
/// The pool is the old one until all of it is there, whatever happens; it is durable on return. It needs room for the
/// pool once more.
///
/// DURUM_E_MIGRATION something stands in the way, and the message says what: pointers of other pools into this one, for
/// one, which durum_pools_migrate makes anew with it; DURUM_E_POOL_MISSING, DURUM_E_STORE_MISSING; DURUM_E_STORE_BUSY,
/// DURUM_E_POOL_BUSY; DURUM_E_STORE_DIRTY a plan of a store that was not closed in order; DURUM_E_DAMAGED an object
/// contradicts its type; DURUM_E_TYPE, DURUM_E_STORAGE_FULL, DURUM_E_ADDRESSES_EXHAUSTED, DURUM_E_ADDRESS_CONFLICT,
/// DURUM_E_OPTIONS, DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_migrate(
    store: *const c_char,
    name: *const c_char,
    root: *mut TypeDeclaration,
    types: *const MigratedType,
    count: usize,
    flags: u32,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        unsafe { migrate(store, &[MigratedPool { name, root }], (types, count), flags) }
    })
}

/// As durum_pool_migrate, for pools of one store that are made anew together, `pool_count` of them: pointers between
/// them follow, and all are the old ones or all the new ones. `types` are those of all of them.
///
/// The codes of durum_pool_migrate; DURUM_E_OPTIONS a pool is named twice; DURUM_E_ARGUMENT there is none.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pools_migrate(
    store: *const c_char,
    pools: *const MigratedPool,
    pool_count: usize,
    types: *const MigratedType,
    count: usize,
    flags: u32,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let pools = unsafe { all(pools, pool_count, "the pools are NULL")? };
        // SAFETY: as the caller promises.
        unsafe { migrate(store, pools, (types, count), flags) }
    })
}

/// # Safety
/// So many of them, or none.
unsafe fn all<'a, T>(first: *const T, count: usize, why: &str) -> Result<&'a [T]> {
    match (first.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::argument(why)),
        // SAFETY: as the caller promises.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// # Safety
/// Strings and declarations as the conventions say, and so many types.
unsafe fn migrate(
    store: *const c_char,
    pools: &[MigratedPool],
    (types, count): (*const MigratedType, usize),
    flags: u32,
) -> Result<()> {
    if flags & !(DURUM_MIGRATE_PLAN | DURUM_MIGRATE_UNTYPED_HOLD_NO_POINTERS) != 0 {
        return Err(Failure::argument("the flags are not DURUM_MIGRATE_*"));
    }
    // SAFETY: as the caller promises.
    let (said, store) = unsafe { (all(types, count, "the types are NULL")?, path(store)?) };
    let (mut names, mut roots) = (Vec::new(), Vec::new());
    for pool in pools {
        // SAFETY: as the caller promises.
        unsafe {
            names.push(string(pool.name, "the pool's name")?.to_owned());
            roots.push(declared(pool.root, "the root's type")?.descriptor()?);
        }
    }
    let mut names = names.into_iter();
    let first = names.next();
    let first = first.ok_or_else(|| Failure::argument("there is no pool"))?;
    let mut by = ByProgram {
        rules: Rules(BTreeMap::new()),
        types: NewTypes {
            roots,
            others: Vec::new(),
            pointers_are_typed: false,
        },
        functions: Vec::new(),
        rebuilds: Vec::new(),
        options: MigrateOptions {
            untyped_hold_no_pointers: flags & DURUM_MIGRATE_UNTYPED_HOLD_NO_POINTERS != 0,
            with: names.collect(),
            ..MigrateOptions::default()
        },
    };
    for said in said {
        // SAFETY: as the caller promises.
        unsafe { add(&mut by, said)? };
    }
    let report = by.run(store, &first, flags & DURUM_MIGRATE_PLAN != 0)?;
    Ok(report
        .ensure_possible(store)
        .map_err(client::Error::Store)?)
}

/// # Safety
/// A declaration, or NULL.
unsafe fn declared<'a>(ty: *mut TypeDeclaration, what: &str) -> Result<&'a TypeDeclaration> {
    // SAFETY: as the caller promises.
    unsafe { ty.as_ref() }.ok_or_else(|| Failure::argument(format!("{what} is NULL")))
}

/// # Safety
/// Declarations as the conventions say.
unsafe fn add(by: &mut ByProgram<'_>, said: &MigratedType) -> Result<()> {
    // SAFETY: as the caller promises.
    let (was, now) = unsafe {
        (
            declared(said.was, "a type that was")?.descriptor()?,
            declared(said.now, "a type that is now")?.descriptor()?,
        )
    };
    let rule: &mut Rule = by
        .rules
        .0
        .entry(was.name().unwrap_or_default().to_owned())
        .or_default();
    rule.now = now.name().map(str::to_owned);
    by.types.others.push(now.clone());
    let Some(make) = said.make else {
        return Ok(());
    };
    let argument = said.argument.expose_provenance();
    rule.made_by = Some(MadeBy {
        function: by.functions.len(),
        // What C keeps in an array of structs may be zero.
        zero_is_value: true,
    });
    let align = now.layout().align;
    rule.made_of = Some(Box::new((was, now)));
    let make: Make<'_> = Box::new(move |was, new| {
        let was = std::ptr::with_exposed_provenance::<c_void>(was);
        let argument = std::ptr::with_exposed_provenance_mut::<c_void>(argument);
        let mut room = Room::of(new.len(), align)?;
        // SAFETY: the old value is mapped, and of the type that the function takes; there is room for the new one.
        let result = unsafe { make(was, room.bytes().as_mut_ptr().cast(), argument) };
        if result != 0 {
            return Err(format!("its function gave {result}"));
        }
        new.copy_from_slice(room.bytes());
        Ok(())
    });
    by.functions.push(make);
    Ok(())
}

/// Room for a value, zero and aligned as its type is, to which the program's function stores.
struct Room {
    bytes: Vec<u8>,
    begin: usize,
    size: usize,
}

impl Room {
    fn of(size: usize, align: u64) -> std::result::Result<Self, String> {
        let too_large = || format!("there is no room for {size} bytes at a multiple of {align}");
        let align = usize::try_from(align).map_err(|_| too_large())?.max(1);
        let length = size.checked_add(align).ok_or_else(too_large)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| too_large())?;
        bytes.resize(length, 0);
        let begin = bytes.as_ptr().addr().next_multiple_of(align) - bytes.as_ptr().addr();
        Ok(Self { bytes, begin, size })
    }

    fn bytes(&mut self) -> &mut [u8] {
        let Self { bytes, begin, size } = self;
        bytes.get_mut(*begin..*begin + *size).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn a_value_is_aligned_as_its_type_is() {
        let mut rooms = Vec::new();
        for align in [1, 16, 64, 4096] {
            // Several at once do not all lie at such a place by chance.
            for size in [1, 24, 64, 5000] {
                let mut room = Room::of(size, align).unwrap();
                let at = room.bytes().as_ptr().addr() as u64;
                assert!(at.is_multiple_of(align), "{at:#x} {align}");
                assert_eq!(room.bytes(), vec![0; size]);
                rooms.push(room);
            }
        }
        assert!(Room::of(usize::MAX, 16).is_err());
    }
}
