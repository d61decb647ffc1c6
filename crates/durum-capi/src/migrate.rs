//! Pools that are made anew under other types.

pub(crate) mod room;
mod tree;

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use client::migration::{ByProgram, Make, MigrateOptions, MigrateReport, NewTypes, Rebuild};
use durum_format::migrate::{MadeBy, MapNow, Rule, Rules, Source};

use crate::guard::{Failure, Result, status, string};
use crate::store::path;
use crate::types::{DURUM_KIND_BYTES, TypeDeclaration, number_of};

use room::Room;
use tree::Tree;

/// Nothing is written: what stands in the way is told.
pub const DURUM_MIGRATE_PLAN: u32 = 1;
/// Objects without a known type hold no pointers, and stay as they are.
pub const DURUM_MIGRATE_UNTYPED_HOLD_NO_POINTERS: u32 = 2;

/// What becomes of a type in durum_pool_migrate and durum_pools_migrate.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MigratedType {
    /// The type as the pool has it: DURUM_TYPE_OF of a struct that is declared as the earlier version declared it.
    /// NULL: the types of the name that `now` has or had.
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

/// A field in durum_migrate, of which no function says what becomes of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MigratedField {
    /// Its type's name, as the pool has it.
    pub ty: *const c_char,
    /// Its name: that of the new field, which has a default, or of the old one, which is forgotten.
    pub name: *const c_char,
    /// DURUM_KIND_* of a number, which is its default; DURUM_KIND_BYTES: it goes though it holds pointers.
    pub kind: u32,
    /// The default.
    pub value: *const c_void,
}

/// A map in durum_migrate that is built anew as its keys have changed, or how they compare: a durum::map, whose
/// declarations durum::migration has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MigratedMap {
    /// What it is now.
    pub map: *mut TypeDeclaration,
    /// Its nodes.
    pub node: *mut TypeDeclaration,
    /// The entries in these, whose field `first` is the key.
    pub entry: *mut TypeDeclaration,
    /// Where the map has the address of its first node.
    pub root: u64,
    /// Where it has the number of its entries.
    pub size: u64,
    /// Where a node has its key.
    pub key: u64,
    /// Where it has the address of the node that lies before it, below.
    pub left: u64,
    /// Of that behind it, below.
    pub right: u64,
    /// Of that above.
    pub up: u64,
    /// Where it has its weight: those below have none that is more.
    pub weight: u64,
    /// Whether a key lies before another one: 1 or 0. Another result refuses the migration.
    pub is_less: Option<
        unsafe extern "C" fn(
            left: *const c_void,
            right: *const c_void,
            argument: *mut c_void,
        ) -> c_int,
    >,
    /// What `is_less` gets besides.
    pub argument: *mut c_void,
}

/// How pools are made anew by durum_migrate. Start from DURUM_MIGRATION_INIT.
#[derive(Debug)]
#[repr(C)]
pub struct MigrationBy {
    /// sizeof(durum_migration).
    pub struct_size: u64,
    /// The pools.
    pub pools: *const MigratedPool,
    /// How many.
    pub pool_count: usize,
    /// What becomes of types, of all of them.
    pub types: *const MigratedType,
    /// How many.
    pub type_count: usize,
    /// What becomes of fields.
    pub fields: *const MigratedField,
    /// How many.
    pub field_count: usize,
    /// Maps that are built anew.
    pub maps: *const MigratedMap,
    /// How many.
    pub map_count: usize,
    /// DURUM_MIGRATE_* in any combination.
    pub flags: u32,
}

/// What durum_migrate has done, or would do.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MigrationReport {
    /// Objects, of all pools, as all that follows.
    pub objects: u64,
    /// Maps that were built anew.
    pub rebuilt_maps: u64,
    /// Bytes of the files before.
    pub old_bytes: u64,
    /// Bytes of the new files.
    pub bytes: u64,
    /// New puddles.
    pub puddles: u64,
    /// Bytes that are needed besides while it goes on.
    pub scratch_bytes: u64,
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
        let pools = [MigratedPool { name, root }];
        let by = MigrationBy::of(&pools, (types, count), flags);
        // SAFETY: as the caller promises.
        unsafe { migrate(store, &by) }.map(drop)
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
        let by = MigrationBy {
            pools,
            pool_count,
            ..MigrationBy::of(&[], (types, count), flags)
        };
        // SAFETY: as the caller promises.
        unsafe { migrate(store, &by) }.map(drop)
    })
}

/// As durum_pools_migrate, with all that can be said: `how` has the pools, what becomes of types and of fields, and
/// which maps are built anew. `report` gets what was done, unless it is NULL.
///
/// The codes of durum_pools_migrate; DURUM_E_ARGUMENT `how` was not made with DURUM_MIGRATION_INIT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_migrate(
    store: *const c_char,
    how: *const MigrationBy,
    report: *mut MigrationReport,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let by = unsafe { how.as_ref() }.filter(|by| by.struct_size == MigrationBy::SIZE);
        let by = by.ok_or_else(|| {
            Failure::argument(
                "the migration was not made with DURUM_MIGRATION_INIT of this version",
            )
        })?;
        // SAFETY: as the caller promises.
        let found = unsafe { migrate(store, by)? };
        // SAFETY: as the caller promises.
        if let Some(report) = unsafe { report.as_mut() } {
            *report = MigrationReport {
                objects: found.objects,
                rebuilt_maps: found.rebuilt_maps,
                old_bytes: found.old_bytes,
                bytes: found.bytes,
                puddles: found.puddles,
                scratch_bytes: found.scratch_bytes,
            };
        }
        Ok(())
    })
}

impl MigrationBy {
    const SIZE: u64 = size_of::<Self>() as u64;

    fn of(
        pools: &[MigratedPool],
        (types, type_count): (*const MigratedType, usize),
        flags: u32,
    ) -> Self {
        Self {
            struct_size: Self::SIZE,
            pools: pools.as_ptr(),
            pool_count: pools.len(),
            types,
            type_count,
            fields: ptr::null(),
            field_count: 0,
            maps: ptr::null(),
            map_count: 0,
            flags,
        }
    }
}

/// # Safety
/// So many of them, or none.
pub(crate) unsafe fn all<'a, T>(first: *const T, count: usize, why: &str) -> Result<&'a [T]> {
    match (first.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::argument(why)),
        // SAFETY: as the caller promises.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// # Safety
/// Strings and declarations as the conventions say, and so many of each.
unsafe fn migrate(store: *const c_char, said: &MigrationBy) -> Result<MigrateReport> {
    let flags = said.flags;
    if flags & !(DURUM_MIGRATE_PLAN | DURUM_MIGRATE_UNTYPED_HOLD_NO_POINTERS) != 0 {
        return Err(Failure::argument("the flags are not DURUM_MIGRATE_*"));
    }
    // SAFETY: as the caller promises.
    let (pools, types) = unsafe {
        (
            all(said.pools, said.pool_count, "the pools are NULL")?,
            all(said.types, said.type_count, "the types are NULL")?,
        )
    };
    // SAFETY: as the caller promises.
    let (fields, maps, store) = unsafe {
        (
            all(said.fields, said.field_count, "the fields are NULL")?,
            all(said.maps, said.map_count, "the maps are NULL")?,
            path(store)?,
        )
    };
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
    let mut rules = Rules::default();
    let mut trees = Vec::new();
    for said in maps {
        // SAFETY: as the caller promises.
        trees.push(unsafe { map_of(&mut rules, said, trees.len())? });
    }
    let built: Vec<_> = trees
        .iter()
        .map(|tree| (tree.build(), tree.room()))
        .collect();
    let rebuilds = built.iter().map(|(build, room)| Rebuild { build, room });
    let now = rules.maps.values().map(|map| map.ty.clone());
    let mut by = ByProgram {
        types: NewTypes {
            roots,
            others: now.collect(),
            pointers_are_typed: false,
            heap: None,
        },
        rules,
        functions: Vec::new(),
        rebuilds: rebuilds.collect(),
        options: MigrateOptions {
            untyped_hold_no_pointers: flags & DURUM_MIGRATE_UNTYPED_HOLD_NO_POINTERS != 0,
            with: names.collect(),
            ..MigrateOptions::default()
        },
    };
    for said in types {
        // SAFETY: as the caller promises.
        unsafe { add(&mut by, said)? };
    }
    for said in fields {
        // SAFETY: as the caller promises.
        unsafe { add_field(&mut by, said)? };
    }
    let report = by.run(store, &first, flags & DURUM_MIGRATE_PLAN != 0)?;
    let possible = report.ensure_possible(store);
    possible.map_err(client::Error::Store)?;
    Ok(report)
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
    let now = unsafe { declared(said.now, "a type that is now")?.descriptor()? };
    // SAFETY: as the caller promises.
    let Some(was) = (unsafe { said.was.as_ref() }) else {
        if said.make.is_some() {
            return Err(Failure::argument("a function makes nothing of no type"));
        }
        by.types.others.push(now);
        return Ok(());
    };
    let was = was.descriptor()?;
    let rule: &mut Rule = by
        .rules
        .types
        .entry(was.name().unwrap_or_default().to_owned())
        .or_default();
    let becomes = now.name().map(str::to_owned);
    let is_made_twice = rule.made_by.is_some() && said.make.is_some();
    if is_made_twice || (rule.now.is_some() && rule.now != becomes) {
        return Err(Failure::argument(format!(
            "it is said twice what becomes of {}",
            was.called()
        )));
    }
    rule.now = becomes;
    by.types.others.push(now.clone());
    let Some(make) = said.make else {
        return Ok(());
    };
    rule.made_by = Some(MadeBy {
        function: by.functions.len(),
        // What C keeps in an array of structs may be zero.
        zero_is_value: true,
    });
    let align = now.layout().align;
    rule.made_of = Some(Box::new((was, now)));
    by.functions.push(made_by(make, said.argument, align));
    Ok(())
}

/// A function of C, which makes new values aligned to so many bytes.
pub(crate) fn made_by<'m>(
    make: unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void) -> c_int,
    argument: *mut c_void,
    align: u64,
) -> Make<'m> {
    let argument = argument.expose_provenance();
    Box::new(move |was, new| {
        let was = std::ptr::with_exposed_provenance::<c_void>(was);
        let argument = std::ptr::with_exposed_provenance_mut::<c_void>(argument);
        let mut room = Room::of(new.len(), align)?;
        let _making = room.making();
        // SAFETY: the old value is mapped, and of the type that the function takes; there is room for the new one.
        let result = unsafe { make(was, room.bytes().as_mut_ptr().cast(), argument) };
        if result != 0 {
            return Err(format!("its function gave {result}"));
        }
        new.copy_from_slice(room.bytes());
        Ok(())
    })
}

/// # Safety
/// Names as the conventions say, and a value of that kind.
unsafe fn add_field(by: &mut ByProgram<'_>, said: &MigratedField) -> Result<()> {
    // SAFETY: as the caller promises.
    let (ty, name) = unsafe {
        (
            string(said.ty, "a field's type")?.to_owned(),
            string(said.name, "a field's name")?.to_owned(),
        )
    };
    let rule = by.rules.types.entry(ty).or_default();
    if said.kind == DURUM_KIND_BYTES {
        rule.forget.insert(name);
        return Ok(());
    }
    let number = number_of(said.kind)
        .filter(|_| !said.value.is_null())
        .ok_or_else(|| Failure::argument("the default of a field is no number of DURUM_KIND_*"))?;
    let mut bytes = vec![0; number.size() as usize];
    // SAFETY: as the caller promises.
    unsafe { ptr::copy_nonoverlapping(said.value.cast::<u8>(), bytes.as_mut_ptr(), bytes.len()) };
    rule.fields.insert(name, Source::Bytes(number, bytes));
    Ok(())
}

/// # Safety
/// Declarations as the conventions say.
unsafe fn map_of(rules: &mut Rules, said: &MigratedMap, function: usize) -> Result<Tree> {
    // SAFETY: as the caller promises.
    let [map, node, entry] = unsafe {
        [
            declared(said.map, "a map's type")?.descriptor()?,
            declared(said.node, "the type of a map's nodes")?.descriptor()?,
            declared(said.entry, "the type of a map's entries")?.descriptor()?,
        ]
    };
    let name = |of: &durum_format::types::Descriptor| of.name().unwrap_or_default().to_owned();
    let tree = Tree::of(said, &map, &node, &entry)?;
    let now = MapNow {
        function,
        parts: [name(&node), name(&entry)],
        ty: map,
    };
    let said_before = rules
        .maps
        .insert(now.ty.name().unwrap_or_default().to_owned(), now);
    if said_before.is_some() {
        return Err(Failure::argument(
            "it is said twice how a map is built anew",
        ));
    }
    Ok(tree)
}
