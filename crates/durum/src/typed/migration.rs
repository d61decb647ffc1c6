//! Pools whose types have changed, made anew by the program that has the new ones.

use std::any::Any;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use durum_format::migrate::{MadeBy, Rebuilt, Rule, Rules, Source};
use durum_format::types::{Descriptor, Primitive};
use durum_protocol::Address;
use durum_service::{MigrateOptions, MigrateReport, NewPuddles, NewTypes, Room};

use super::collections::{MapType, Outcome, Rebuild};
use super::migrating::{CarryTo, Migrating, descriptor_of, unmarked};
use super::open::{POOL, RootObject};
use super::pool_type::PoolType;
use super::psafe::{PSafe, name_of};
use super::values::Root;
use crate::error::{Error, Result};
use crate::migration::{self, ByProgram};

/// A function for the values of one type: the old one's address, the new one's bytes.
type Make = Box<dyn Fn(usize, &mut [u8]) -> Result<(), String>>;

/// How maps of a type are built anew.
struct Rebuilds {
    build: Box<dyn Fn(usize, &mut NewPuddles, &mut Room) -> Outcome>,
    room: fn(&[u8], u64) -> u64,
}

/// What becomes of the types of a pool that the program has changed ([`Migrate::migrate`]).
///
/// Fields of the same name, or of a former one (`#[durum(was = "...")]`), stay what they are, and so do whole types; so
/// only what is new need be said: a default, or a function that makes the new value of the old one.
pub struct Migration<P> {
    rules: Rules,
    functions: Vec<Make>,
    rebuilds: Vec<Rebuilds>,
    options: MigrateOptions,
    pool: String,
    /// Those of the pools that are made anew with it.
    roots: Vec<Descriptor>,
    /// Types of which these say what becomes of them.
    of_others: BTreeSet<String>,
    /// Types of which more than one of them says that, or more than one function is said.
    said_twice: Vec<String>,
    j: Rc<Migrating<P>>,
    _pool: PhantomData<P>,
}

impl<P> fmt::Debug for Migration<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration")
            .field("rules", &self.rules)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<P: PoolType> Default for Migration<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: PoolType> Migration<P> {
    /// Nothing is said yet.
    pub fn new() -> Self {
        Self {
            rules: Rules::default(),
            functions: Vec::new(),
            rebuilds: Vec::new(),
            options: MigrateOptions::default(),
            pool: POOL.to_owned(),
            roots: Vec::new(),
            of_others: BTreeSet::new(),
            said_twice: Vec::new(),
            j: Rc::new(Migrating::new()),
            _pool: PhantomData,
        }
    }

    fn rule(&mut self, name: &str) -> &mut Rule {
        if self.of_others.contains(name) {
            self.said_twice.push(name.to_owned());
        }
        self.rules.types.entry(name.to_owned()).or_default()
    }

    /// What becomes of an `Old` by a function, which is said of it once.
    fn rule_by<Old: PSafe, New: PSafe>(&mut self) -> &mut Rule {
        let name = name_of::<Old>();
        let rule = self.rules.types.get(&name);
        if rule.is_some_and(|rule| rule.made_by.is_some() || rule.rebuilt.is_some()) {
            self.said_twice.push(name.clone());
        }
        let rule = self.rule(&name);
        rule.now = Some(name_of::<New>());
        rule.made_of = Some(Box::new((descriptor_of::<Old>(), descriptor_of::<New>())));
        rule
    }

    /// Every `Old`, wherever it lies, becomes the `New` that `make` gives. `Old` is the type as the earlier version of
    /// the program had it, under a pool type of its own.
    ///
    /// It is asked twice for each value, and gives the same both times. It may look at whatever the old value leads to.
    /// What it carries over ([`Migrating::carry`]) it neither follows nor drops: that ends the program, and the pool is
    /// the old one. So it does not panic, either.
    #[must_use]
    pub fn object<Old: PSafe, New: PSafe>(
        mut self,
        make: impl Fn(&Old, &Migrating<P>) -> New + 'static,
    ) -> Self {
        const { New::POOL.assert_fits(P::ID) };
        let function = self.functions.len();
        let j = self.j.clone();
        self.functions.push(Box::new(move |old, new| {
            // SAFETY: the old pool is mapped where it was, and the value there is an `Old`: its type is the one that
            // the rule asks for. Nobody else has it.
            let old = unsafe { &*ptr::with_exposed_provenance::<Old>(old) };
            // What is carried over is the pool's: it is not dropped here.
            let made = catch_unwind(AssertUnwindSafe(|| ManuallyDrop::new(make(old, &j))));
            let made = made.map_err(|panic| format!("its function panicked: {}", said(&*panic)))?;
            put::<New, P>(&made, new, &j)
        }));
        self.rule_by::<Old, New>().made_by = Some(MadeBy {
            function,
            zero_is_value: Old::ZERO_IS_VALUE,
        });
        self
    }

    /// Maps that were an `Old`, wherever they lie, are built anew as a `New`, by its own `Hash` or `Ord`: their keys
    /// may become others, by a function or by their names. That is also for maps of which only `Hash` or `Ord` has
    /// changed, where `Old` and `New` are called the same.
    ///
    /// It comes last, when all else is written and before the pool is the new one. Keys that have become the same
    /// refuse the migration by the path of their map. A plan finds them, too: it makes the new pool in files without
    /// a name. Where keys hold maps that are built anew, these are built before.
    ///
    /// Types are told apart by their names, which no module is part of, and by their descriptions: a map of another
    /// type of the same name refuses the migration. Types of one name with the same fields cannot be told apart: all
    /// such maps are built by the `Hash` or `Ord` of this `New`.
    #[must_use]
    pub fn rebuild<Old: MapType + CarryTo<New>, New: Rebuild>(mut self) -> Self {
        const { New::POOL.assert_fits(P::ID) };
        let function = self.rebuilds.len();
        let build = |address, new: &mut NewPuddles, room: &mut Room| {
            // SAFETY: the new puddles are mapped, and what lies there has the name and the description of a `New`, as
            // the migration is refused otherwise: its bytes are such a map, or one of a type that differs in code only.
            unsafe { (*ptr::with_exposed_provenance::<New>(address)).rebuild(new, room) }
        };
        self.rebuilds.push(Rebuilds {
            build: Box::new(build),
            room: room_of::<New>,
        });
        for (was, now) in Old::parts().iter().zip(New::parts()) {
            let rule = self.rule(was);
            (rule.now, rule.rebuilt) = (Some(now), Some(Rebuilt::Part));
        }
        self.rule_by::<Old, New>().rebuilt = Some(Rebuilt::Map(function));
        self
    }

    /// A field that was not there has this value in each object that was, or in its cell. It is of the value's type:
    /// the migration is refused otherwise. `ty` is the name of the type as the pool has it.
    #[must_use]
    pub fn default_of(mut self, ty: &str, field: &str, value: impl Number) -> Self {
        let (number, bytes) = value.said();
        let fields = &mut self.rule(ty).fields;
        fields.insert(field.to_owned(), Source::Bytes(number, bytes));
        self
    }

    /// A field goes though it holds pointers: what they lead to is reached otherwise, or lost. `ty` is the name of the
    /// type as the pool has it, and `field` that of the old field.
    #[must_use]
    pub fn forget(mut self, ty: &str, field: &str) -> Self {
        self.rule(ty).forget.insert(field.to_owned());
        self
    }

    /// The name of the pool in its store, if it is one of several ([`PoolType::open_in`]).
    #[must_use]
    pub fn pool(mut self, name: &str) -> Self {
        name.clone_into(&mut self.pool);
        self
    }

    /// Another pool of the store is made anew with this one, whose root is to be a `T` then: pointers between them
    /// follow, and all are the old ones or all the new ones. `migration` has its name ([`Migration::pool`]), and says
    /// what becomes of its types: of none of which this one does, as what is said of a type is said of those of all
    /// pools. How it goes on is told to this one.
    #[must_use]
    pub fn with<T: Root<Q>, Q: PoolType>(mut self, migration: Migration<Q>) -> Self {
        const { T::POOL.assert_fits(Q::ID) };
        let (first, first_rebuild) = (self.functions.len(), self.rebuilds.len());
        self.functions.extend(migration.functions);
        self.rebuilds.extend(migration.rebuilds);
        self.said_twice.extend(migration.said_twice);
        for (name, mut rule) in migration.rules.types {
            if let Some(by) = &mut rule.made_by {
                by.function += first;
            }
            if let Some(Rebuilt::Map(function)) = &mut rule.rebuilt {
                *function += first_rebuild;
            }
            if self.rules.types.insert(name.clone(), rule).is_some() {
                self.said_twice.push(name.clone());
            }
            self.of_others.insert(name);
        }
        self.options.with.push(migration.pool);
        self.options.with.extend(migration.options.with);
        self.roots.push(descriptor_of::<RootObject<T>>());
        self.roots.extend(migration.roots);
        self
    }

    /// Objects of unknown type hold no pointers. Without it a pool with some is refused.
    #[must_use]
    pub fn untyped_hold_no_pointers(mut self) -> Self {
        self.options.untyped_hold_no_pointers = true;
        self
    }

    /// Called as it goes on, with [`Stage::Migrate`](crate::Stage::Migrate).
    #[must_use]
    pub fn progress(mut self, tell: impl Fn(crate::Progress) + Send + Sync + 'static) -> Self {
        self.options.progress = Some(Arc::new(tell));
        self
    }

    /// As [`Migrate::migrate`], or without doing it.
    fn run<T: Root<P>>(&self, path: &Path, is_plan: bool) -> Result<MigrateReport> {
        if Address::split_pool(path).is_some() {
            return Err(Error::NotMigrated { path: path.into() });
        }
        if let Some(name) = self.said_twice.first() {
            let reason = format!(
                "it is said twice what becomes of type {name}, by functions or of two pools: once is enough"
            );
            return Err(durum_service::Error::Options { reason }.into());
        }
        let root = descriptor_of::<RootObject<T>>();
        let (functions, rebuilds) = (self.functions.iter(), self.rebuilds.iter());
        let by = ByProgram {
            rules: self.rules.clone(),
            types: NewTypes {
                roots: [root].into_iter().chain(self.roots.clone()).collect(),
                others: Vec::new(),
                pointers_are_typed: true,
                heap: None,
            },
            functions: functions
                .map(|make| -> migration::Make<'_> { Box::new(make) })
                .collect(),
            rebuilds: rebuilds
                .map(|Rebuilds { build, room }| migration::Rebuild { build, room })
                .collect(),
            options: self.options.clone(),
        };
        by.run(path, &self.pool, is_plan)
    }
}

/// Makes pools anew whose types have changed.
pub trait Migrate: PoolType {
    /// Makes the pool in the store directory `path` anew, whose root is to be a `T` then: every object becomes what the
    /// types of the program say there, by names of fields, and what the migration says besides. Whole or not at all,
    /// and durable on return. Nobody has the store open.
    ///
    /// ```
    /// use durum::typed::*;
    ///
    /// mod one {
    ///     use durum::typed::*;
    ///     durum::pool!(pub P);
    ///
    ///     #[derive(PSafe)]
    ///     #[repr(C)]
    ///     pub struct Task {
    ///         pub tries: u32,
    ///         pub next: Option<Parc<Task, P>>,
    ///     }
    ///     pub type Entry = PMutex<Option<Parc<Task, P>>, P>;
    /// }
    /// durum::pool!(P);
    ///
    /// #[derive(PSafe)]
    /// #[repr(C)]
    /// struct Task {
    ///     next: Option<Parc<Task, P>>,
    ///     failed: PCell<bool, P>,
    /// }
    /// type Entry = PMutex<Option<Parc<Task, P>>, P>;
    ///
    /// # let directory = tempfile::tempdir_in("/dev/shm")?;
    /// # let path = directory.path().join("store");
    /// # {
    /// #     let root = one::P::open::<one::Entry>(&path, Flags::CREATE)?;
    /// #     one::P::transaction(|j| {
    /// #         let task = one::Task { tries: 4, next: None };
    /// #         *root.lock(j) = Some(Parc::new(task, j));
    /// #     })?;
    /// # }
    /// let migration = Migration::new().object(|old: &one::Task, j| Task {
    ///     next: j.carry(&old.next),
    ///     failed: j.cell(old.tries > 3),
    /// });
    /// let plan = P::plan_migration::<Entry>(&path, &migration)?;
    /// assert!(plan.refusals.is_empty());
    /// P::migrate::<Entry>(&path, migration)?;
    /// let root = P::open::<Entry>(&path, 0)?;
    /// P::transaction(|j| assert!(root.lock(j).as_ref().is_some_and(|task| task.failed.get())))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotMigrated` for the store of a service; `MigrationRefused` of the store with everything that stands in the
    /// way; those of [`Embedded::migrate_pool`](durum_service::Embedded::migrate_pool). The pool is what it was.
    fn migrate<T: Root<Self>>(
        path: impl AsRef<Path>,
        migration: impl Borrow<Migration<Self>>,
    ) -> Result<MigrateReport> {
        const { T::POOL.assert_fits(Self::ID) };
        migration.borrow().run::<T>(path.as_ref(), false)
    }

    /// Tells what [`Migrate::migrate`] would do, and everything that stands in its way. Writes nothing.
    ///
    /// # Errors
    /// As for that, but for `MigrationRefused`; `StoreDirty` of the store where there are functions, which look at what
    /// recovery has not been to.
    fn plan_migration<T: Root<Self>>(
        path: impl AsRef<Path>,
        migration: impl Borrow<Migration<Self>>,
    ) -> Result<MigrateReport> {
        const { T::POOL.assert_fits(Self::ID) };
        migration.borrow().run::<T>(path.as_ref(), true)
    }
}

impl<P: PoolType> Migrate for P {}

/// The room in which a map is built anew, by its bytes, which lie anywhere.
fn room_of<New: Rebuild>(map: &[u8], most: u64) -> u64 {
    if map.len() < size_of::<New>() {
        return 0;
    }
    // SAFETY: as many bytes of a map, which is words: any are one. It is looked at, and nothing of it is followed.
    let map = unsafe { ManuallyDrop::new(map.as_ptr().cast::<New>().read_unaligned()) };
    map.room(most)
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("nothing")
}

/// Puts a value in its place, and has its pointers be those of the old one again.
fn put<New: PSafe, P: PoolType>(
    made: &New,
    new: &mut [u8],
    j: &Migrating<P>,
) -> Result<(), String> {
    assert_eq!(
        new.len(),
        size_of::<New>(),
        "the descriptor's size is the compiler's"
    );
    // SAFETY: as many bytes.
    unsafe {
        let from = ptr::from_ref(made).cast::<u8>();
        ptr::copy_nonoverlapping(from, new.as_mut_ptr(), new.len());
    }
    let layout = j.layout_of::<New>();
    let mut places = Vec::new();
    let fits = layout.visit_pointers(new, |pointer| places.push(pointer.offset as usize));
    fits.map_err(|error| error.to_string())?;
    for at in places {
        let Some(place) = new
            .get_mut(at..)
            .and_then(|rest| rest.first_chunk_mut::<8>())
        else {
            continue;
        };
        match u64::from_le_bytes(*place) {
            0 => {}
            word => match unmarked(word) {
                Some(word) => *place = word.to_le_bytes(),
                None => return Err("its function makes a pointer that was not carried over".into()),
            },
        }
    }
    Ok(())
}

/// A number, as a default of a field ([`Migration::default_of`]).
pub trait Number: Copy {
    #[doc(hidden)]
    fn said(self) -> (Primitive, Vec<u8>);
}

macro_rules! numbers {
    ($($type:ty: $primitive:ident),*) => { $(
        impl Number for $type {
            fn said(self) -> (Primitive, Vec<u8>) {
                (Primitive::$primitive, self.to_le_bytes().to_vec())
            }
        }
    )* };
}

numbers! {
    u8: U8, u16: U16, u32: U32, u64: U64, usize: U64,
    i8: I8, i16: I16, i32: I32, i64: I64, isize: I64,
    f32: F32, f64: F64
}

impl Number for bool {
    fn said(self) -> (Primitive, Vec<u8>) {
        (Primitive::Bool, vec![self.into()])
    }
}

impl Number for char {
    fn said(self) -> (Primitive, Vec<u8>) {
        (Primitive::Char, u32::from(self).to_le_bytes().to_vec())
    }
}
