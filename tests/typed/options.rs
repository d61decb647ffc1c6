//! `Option`s of values in pools from before they had a description: their bytes mean what they meant.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests describe types as earlier builds did"
)]

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use durum::typed::*;
use durum::{Engine, Error};

const ENGINES: [Engine; 3] = [Engine::Shadow, Engine::Hybrid, Engine::Twin];
const TASKS: u64 = 40;

/// A program whose build described options as bytes.
mod before {
    use std::borrow::Cow;

    use durum::typed::__private::Plain;
    use durum::typed::*;
    use durum::types::{Field, Type};
    use durum::{Described, Walk};

    durum::pool!(pub P);

    /// An option, as it was described.
    #[derive(Clone, Copy)]
    #[repr(transparent)]
    pub struct Bytes<T>(pub Option<T>);

    unsafe impl<T: PSafe> Described for Bytes<T> {
        fn name() -> Option<Cow<'static, str>> {
            let value = T::name().unwrap();
            Some(format!("Option<{value}>").into())
        }

        fn layout(_: &mut Walk) -> Type<String> {
            let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
            let name = format!("bytes of {:016x}", T::description().id());
            let bytes = Field::new(name, 0, Type::Opaque { size, align });
            Type::structure(Self::name().unwrap(), size, align, vec![bytes])
        }
    }

    unsafe impl<T: PSafe> PSafe for Bytes<T> {
        type Threads = ();
        type Kind = Plain;
        const OWNERS: bool = false;
        const WORDS: bool = false;
        const POOL: PoolId = PoolId::ANY;

        fn owners(&self) -> i64 {
            0
        }
    }

    #[derive(PSafe, Clone, Copy)]
    #[repr(C, u8)]
    pub enum State {
        Waiting,
        Running { worker: u64 },
    }

    #[derive(PSafe, Clone, Copy)]
    #[repr(C)]
    pub struct Place {
        pub row: u64,
        pub seat: Bytes<char>,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Task {
        pub name: PString<P>,
        pub deadline: PCell<Bytes<u64>, P>,
        pub state: Bytes<State>,
        pub place: Bytes<Place>,
        pub flags: [Bytes<bool>; 3],
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Queue {
        pub tasks: PVec<Parc<Task, P>, P>,
        pub times: PVec<Bytes<u64>, P>,
        pub by_number: PHashMap<(u64, Bytes<u64>), u64, P>,
    }

    impl PartialEq for Bytes<u64> {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl Eq for Bytes<u64> {}

    impl std::hash::Hash for Bytes<u64> {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    pub type Entry = PMutex<Queue, P>;

    /// So large that an option of it is bytes to all builds.
    #[derive(PSafe, Clone, Copy)]
    #[repr(C)]
    pub struct Wide {
        pub numbers: [u64; 3000],
        pub last: Bytes<u64>,
        pub place: Bytes<Place>,
        pub is_there: Bytes<()>,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Shelf {
        pub all: PVec<Bytes<Wide>, P>,
    }

    pub type WideEntry = PMutex<Shelf, P>;
}

/// The same program now.
mod now {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, Clone, Copy, Debug, PartialEq)]
    #[repr(C, u8)]
    pub enum State {
        Waiting,
        Running { worker: u64 },
    }

    #[derive(PSafe, Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    pub struct Place {
        pub row: u64,
        pub seat: Option<char>,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Task {
        pub name: PString<P>,
        pub deadline: PCell<Option<u64>, P>,
        pub state: Option<State>,
        pub place: Option<Place>,
        pub flags: [Option<bool>; 3],
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Queue {
        pub tasks: PVec<Parc<Task, P>, P>,
        pub times: PVec<Option<u64>, P>,
        pub by_number: PHashMap<(u64, Option<u64>), u64, P>,
    }

    pub type Entry = PMutex<Queue, P>;

    #[derive(PSafe, Clone, Copy)]
    #[repr(C)]
    pub struct Wide {
        pub numbers: [u64; 3000],
        pub last: Option<u64>,
        pub place: Option<Place>,
        pub is_there: Option<()>,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Shelf {
        pub all: PVec<Option<Wide>, P>,
    }

    pub type WideEntry = PMutex<Shelf, P>;
}

/// A later version: what options hold has changed.
mod later {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, Clone, Copy, Debug, PartialEq)]
    #[repr(C, u8)]
    pub enum State {
        Done,
        Running { worker: u64, since: u32 },
        Waiting,
    }

    #[derive(PSafe, Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    pub struct Place {
        pub seat: Option<char>,
        pub row: u64,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Task {
        pub flags: [Option<bool>; 3],
        pub place: Option<Place>,
        pub deadline: PCell<Option<u64>, P>,
        pub state: Option<State>,
        pub name: PString<P>,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Queue {
        pub tasks: PVec<Parc<Task, P>, P>,
        pub times: PVec<Option<u64>, P>,
        pub by_number: PHashMap<(u64, Option<u64>), u64, P>,
    }

    pub type Entry = PMutex<Queue, P>;

    pub fn migration() -> Migration<P> {
        Migration::new().object(|old: &super::now::State, _| match *old {
            super::now::State::Waiting => State::Waiting,
            super::now::State::Running { worker } => State::Running { worker, since: 5 },
        })
    }
}

/// A pool type has one pool at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> (MutexGuard<'static, ()>, tempfile::TempDir) {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (alone, tempfile::tempdir_in("/dev/shm").unwrap())
}

fn deadline(number: u64) -> Option<u64> {
    (!number.is_multiple_of(3)).then_some(number)
}

fn seat(number: u64) -> Option<char> {
    (!number.is_multiple_of(5)).then_some(['ä', '\0', char::MAX][number as usize % 3])
}

fn flags(number: u64) -> [Option<bool>; 3] {
    [None, Some(number.is_multiple_of(2)), Some(false)]
}

/// A pool that a build from before has made.
fn make(path: &Path, engine: Engine) {
    use before::*;
    let options = OpenOptions::new().create(true).engine(engine);
    let root = P::open::<Entry>(path, options).unwrap();
    P::transaction(|j| {
        let mut queue = root.lock(j);
        for number in 0..TASKS {
            let task = Task {
                name: PString::new("task", j),
                deadline: PCell::new(Bytes(deadline(number)), j),
                state: Bytes(match number % 3 {
                    0 => None,
                    1 => Some(State::Waiting),
                    _ => Some(State::Running { worker: number }),
                }),
                place: Bytes((number % 4 != 0).then_some(Place {
                    row: number,
                    seat: Bytes(seat(number)),
                })),
                flags: flags(number).map(Bytes),
            };
            queue.tasks.push(Parc::new(task, j), j);
            queue.times.push(Bytes(deadline(number)), j);
            let key = (number, Bytes(deadline(number)));
            queue.by_number.insert(key, number, j);
        }
    })
    .unwrap();
    root.close().unwrap();
}

/// What a program finds that knows the options.
macro_rules! assert_there {
    ($version:ident, $queue:expr, $state:expr) => {
        let (queue, state): (&$version::Queue, fn(u64) -> Option<$version::State>) =
            ($queue, $state);
        assert_eq!(queue.tasks.len() as u64, TASKS);
        for number in 0..TASKS {
            let task = &queue.tasks[number as usize];
            assert_eq!(task.deadline.get(), deadline(number));
            assert_eq!(task.state, state(number));
            let seat = seat(number);
            let row = number;
            let place = (number % 4 != 0).then_some($version::Place { row, seat });
            assert_eq!(task.place, place);
            assert_eq!(task.flags, flags(number));
            assert_eq!(queue.times[number as usize], deadline(number));
            assert_eq!(queue.by_number[&(number, deadline(number))], number);
        }
    };
}

fn state(number: u64) -> Option<now::State> {
    match number % 3 {
        0 => None,
        1 => Some(now::State::Waiting),
        _ => Some(now::State::Running { worker: number }),
    }
}

fn assert_sound(path: &Path) {
    let report = durum_service::check(path, &Default::default()).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn a_pool_whose_options_are_bytes_opens_as_it_is() {
    for engine in ENGINES {
        let (_alone, directory) = alone();
        let path = directory.path().join("store");
        make(&path, engine);
        // Whoever reads records nothing.
        let reading = now::P::open::<now::Entry>(&path, Flags::READ_ONLY).unwrap();
        reading.close().unwrap();
        before::P::open::<before::Entry>(&path, 0)
            .unwrap()
            .close()
            .unwrap();
        let root = now::P::open::<now::Entry>(&path, 0).unwrap();
        now::P::transaction(|j| {
            let queue = root.lock(j);
            assert_there!(now, &*queue, state);
            queue.tasks[0].deadline.set(Some(77), j);
        })
        .unwrap();
        root.close().unwrap();
        assert_sound(&path);
        let old = before::P::open::<before::Entry>(&path, 0).unwrap_err();
        assert!(matches!(old, Error::OldRootType { .. }), "{old}");
        let root = now::P::open::<now::Entry>(&path, 0).unwrap();
        now::P::transaction(|j| {
            let mut queue = root.lock(j);
            assert_eq!(queue.tasks[0].deadline.get(), Some(77));
            queue.tasks.clear();
            queue.times.push(Some(1), j);
            queue.times.push(None, j);
        })
        .unwrap();
        root.close().unwrap();
        assert_sound(&path);
    }
}

/// An option that stays bytes is the one that it was, though options in its value have a description.
#[test]
fn an_option_that_is_bytes_to_all_builds_stays_one() {
    use durum::Described;
    assert_eq!(
        <Option<now::Wide>>::description().text(),
        <before::Bytes<before::Wide>>::description().text()
    );
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    let options = OpenOptions::new().create(true);
    let root = before::P::open::<before::WideEntry>(&path, options).unwrap();
    before::P::transaction(|j| {
        let wide = before::Wide {
            numbers: [8; 3000],
            last: before::Bytes(Some(7)),
            place: before::Bytes(None),
            is_there: before::Bytes(Some(())),
        };
        let mut shelf = root.lock(j);
        shelf.all.push(before::Bytes(Some(wide)), j);
        shelf.all.push(before::Bytes(None), j);
    })
    .unwrap();
    root.close().unwrap();
    let root = now::P::open::<now::WideEntry>(&path, 0).unwrap();
    now::P::transaction(|j| {
        let shelf = root.lock(j);
        let wide = shelf.all[0].as_ref().unwrap();
        assert_eq!((wide.numbers[2999], wide.last), (8, Some(7)));
        assert_eq!((wide.place, wide.is_there), (None, Some(())));
        assert!(shelf.all[1].is_none());
    })
    .unwrap();
    root.close().unwrap();
    assert_sound(&path);
}

fn as_later(number: u64) -> Option<later::State> {
    state(number).map(|state| match state {
        now::State::Waiting => later::State::Waiting,
        now::State::Running { worker } => later::State::Running { worker, since: 5 },
    })
}

/// Opens it as `later`, and looks at it.
fn assert_later(path: &Path) {
    let root = later::P::open::<later::Entry>(path, 0).unwrap();
    later::P::transaction(|j| {
        assert_there!(later, &*root.lock(j), as_later);
    })
    .unwrap();
    root.close().unwrap();
    assert_sound(path);
}

#[test]
fn what_options_hold_is_migrated() {
    for engine in ENGINES {
        let (_alone, directory) = alone();
        let path = directory.path().join("store");
        make(&path, engine);
        // The description of what they hold is not known before.
        let plan = later::P::plan_migration::<later::Entry>(&path, later::migration()).unwrap();
        let told: Vec<String> = plan.refusals.iter().map(ToString::to_string).collect();
        assert!(
            told.iter()
                .any(|why| why.contains("was bytes to the store")),
            "{told:#?}"
        );
        // The program as it was, with a build that knows options, has been there.
        let root = now::P::open::<now::Entry>(&path, 0).unwrap();
        now::P::transaction(|j| drop(root.lock(j))).unwrap();
        root.close().unwrap();
        later::P::migrate::<later::Entry>(&path, later::migration()).unwrap();
        assert_later(&path);
    }
}
