//! Types change in any way, data stays: pools are made anew by the program that has the new types.

mod damaged;
mod killed;
mod maps;
mod nested;
mod together;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use durum::typed::*;
use durum::{Engine, Error, Store, StoreOptions};

const ENGINES: [Engine; 3] = [Engine::Shadow, Engine::Hybrid, Engine::Twin];
const TASKS: u64 = 50;

/// As it began.
mod one {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe)]
    #[repr(C, u8)]
    pub enum State {
        Waiting,
        Running { worker: u64 },
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Task {
        pub name: PString<P>,
        pub tries: PCell<u32, P>,
        pub state: PRefCell<State, P>,
        pub next: Option<Parc<Task, P>>,
        pub boss: PRefCell<Option<PWeak<Task, P>>, P>,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Queue {
        pub first: Option<Parc<Task, P>>,
        pub by_number: PHashMap<u64, Parc<Task, P>, P>,
        pub names: PBTreeMap<PString<P>, u64, P>,
        pub times: PVec<(u32, u32), P>,
    }

    pub type Entry = PMutex<Queue, P>;
}

/// Cases have other numbers and fields, tasks another name, order and more fields.
mod two {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe)]
    #[repr(C, u8)]
    pub enum State {
        Running {
            worker: u64,
            since: u64,
        },
        Waiting,
        #[allow(dead_code, reason = "a new one")]
        Done,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Job {
        pub deadline: u64,
        pub boss: PRefCell<Option<PWeak<Job, P>>, P>,
        pub attempts: PMutex<u64, P>,
        pub name: PString<P>,
        pub after: Option<Parc<Job, P>>,
        pub state: PRefCell<State, P>,
        pub length: usize,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Queue {
        pub by_number: PHashMap<u64, Parc<Job, P>, P>,
        pub names: PBTreeMap<PString<P>, u64, P>,
        pub times: PVec<(u32, u32), P>,
        pub first: Option<Parc<Job, P>>,
        pub closed: PCell<bool, P>,
    }

    pub type Entry = PMutex<Queue, P>;

    /// What becomes of the first version.
    pub fn migration() -> Migration<P> {
        Migration::new()
            .default_of("Queue", "closed", true)
            .object(|old: &super::one::Task, j| Job {
                deadline: 100 + u64::from(old.tries.get()),
                boss: j.carry(&old.boss),
                attempts: j.cell(old.tries.get().into()),
                name: j.carry(&old.name),
                after: j.carry(&old.next),
                state: j.cell(match *old.state.borrow() {
                    super::one::State::Waiting => State::Waiting,
                    super::one::State::Running { worker } => State::Running { worker, since: 7 },
                }),
                // What the old value leads to is there to be looked at.
                length: old.name.len() + old.next.as_ref().map_or(0, |next| next.name.len()),
            })
    }
}

/// A pool type has one pool at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> (MutexGuard<'static, ()>, tempfile::TempDir) {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (alone, tempfile::tempdir_in("/dev/shm").unwrap())
}

fn name(number: u64) -> String {
    format!("task {}", "x".repeat(number as usize % 20))
}

/// A pool of the first version: a list, of which each task is in a map, too, and has the first as its boss.
fn make(path: &Path, engine: Engine) {
    let options = OpenOptions::new().create(true).engine(engine);
    let root = one::P::open::<one::Entry>(path, options).unwrap();
    for number in (0..TASKS).rev() {
        one::P::transaction(|j| {
            let mut queue = root.lock(j);
            let next = queue.first.take();
            let task = Parc::new(
                one::Task {
                    name: PString::new(&name(number), j),
                    tries: PCell::new(number as u32, j),
                    state: PRefCell::new(
                        match number % 3 {
                            0 => one::State::Running { worker: number },
                            _ => one::State::Waiting,
                        },
                        j,
                    ),
                    next,
                    boss: PRefCell::new(None, j),
                },
                j,
            );
            queue.by_number.insert(number, task.pclone(j), j);
            queue
                .names
                .insert(PString::new(&format!("{number:03}"), j), number, j);
            queue.times.push((number as u32, 1), j);
            queue.first = Some(task);
        })
        .unwrap();
    }
    one::P::transaction(|j| {
        let queue = root.lock(j);
        let first = queue.first.as_ref().unwrap();
        for number in 1..TASKS {
            let task = &queue.by_number[&number];
            *task.boss.borrow_mut(j) = Some(first.downgrade(j));
        }
    })
    .unwrap();
    root.close().unwrap();
}

fn assert_migrated(path: &Path) {
    let root = two::P::open::<two::Entry>(path, 0).unwrap();
    two::P::transaction(|j| {
        let queue = root.lock(j);
        assert!(queue.closed.get());
        let mut next = queue.first.as_ref();
        for number in 0..TASKS {
            let job = next.unwrap();
            assert!(job.ptr_eq(&queue.by_number[&number]));
            assert_eq!(job.strong_count(j), 2);
            assert_eq!(&*job.name, name(number).as_str());
            assert_eq!(
                (job.deadline, *job.attempts.lock(j)),
                (100 + number, number)
            );
            let length = name(number).len()
                + match number + 1 {
                    TASKS => 0,
                    next => name(next).len(),
                };
            assert_eq!(job.length, length);
            match *job.state.borrow() {
                two::State::Running { worker, since } => assert_eq!((worker, since), (number, 7)),
                two::State::Waiting => assert_ne!(number % 3, 0),
                two::State::Done => panic!("nobody has done anything"),
            }
            let boss = job.boss.borrow();
            let boss = boss.as_ref().and_then(|boss| boss.upgrade(j));
            assert_eq!(boss.is_some(), number > 0);
            assert!(boss.is_none_or(|boss| boss.ptr_eq(queue.first.as_ref().unwrap())));
            assert_eq!(queue.names[format!("{number:03}").as_str()], number);
            assert_eq!(
                queue.times[number as usize],
                ((TASKS - 1 - number) as u32, 1)
            );
            next = job.after.as_ref();
        }
        assert!(next.is_none());
    })
    .unwrap();
    // It goes on, and everything can be dropped.
    two::P::transaction(|j| {
        let mut queue = root.lock(j);
        queue.by_number.clear();
        queue.names.clear();
        queue.first = None;
    })
    .unwrap();
    root.close().unwrap();
    let report = durum_service::check(path, &Default::default()).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn a_function_makes_new_values_of_old_ones_on_each_engine() {
    for engine in ENGINES {
        let (_alone, directory) = alone();
        let path = directory.path().join("store");
        make(&path, engine);
        let refused = two::P::open::<two::Entry>(&path, 0).unwrap_err();
        assert!(matches!(refused, Error::RootType { .. }), "{refused}");
        let plan = two::P::plan_migration::<two::Entry>(&path, two::migration()).unwrap();
        assert_eq!(plan.refusals, []);
        let tasks = plan
            .types
            .iter()
            .find(|ty| ty.name == "counted Task")
            .unwrap();
        assert_eq!((tasks.now.as_str(), tasks.objects), ("counted Job", TASKS));
        let report = two::P::migrate::<two::Entry>(&path, two::migration()).unwrap();
        assert_eq!(report, plan);
        let gone = one::P::open::<one::Entry>(&path, 0).unwrap_err();
        assert!(matches!(gone, Error::RootType { .. }), "{gone}");
        assert_migrated(&path);
    }
}

#[track_caller]
fn refused(path: &Path, migration: Migration<two::P>, what: &[&str]) {
    let plan = two::P::plan_migration::<two::Entry>(path, &migration).unwrap();
    let told: Vec<String> = plan.refusals.iter().map(ToString::to_string).collect();
    for what in what {
        assert!(
            told.iter().any(|told| told.contains(what)),
            "{what}: {told:#?}"
        );
    }
    let refused = two::P::migrate::<two::Entry>(path, &migration).unwrap_err();
    let Error::Store(durum_service::Error::MigrationRefused { reasons, .. }) = refused else {
        panic!("{refused}");
    };
    assert_eq!(reasons, told);
}

/// A function that makes a job, but for `after` and `name`.
fn with(
    links: impl Fn(&one::Task, &Migrating<two::P>) -> (PString<two::P>, Option<Parc<two::Job, two::P>>)
    + 'static,
) -> Migration<two::P> {
    Migration::new()
        .default_of("Queue", "closed", false)
        .object(move |old: &one::Task, j| {
            let (name, after) = links(old, j);
            two::Job {
                deadline: 0,
                boss: j.carry(&old.boss),
                attempts: j.cell(0),
                name,
                after,
                state: j.cell(two::State::Waiting),
                length: 0,
            }
        })
}

#[test]
fn what_owns_something_is_carried_over_once() {
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path, Engine::Shadow);
    // The last task has no next one.
    refused(
        &path,
        with(|old, j| (j.carry(&old.name), None)),
        &[
            "counted Task.value: its function forgets a pointer that owns something: `carry` it over (49 objects)",
        ],
    );
    refused(
        &path,
        with(|_, _| (PString::default(), None)),
        &["its function forgets a pointer that owns something"],
    );
    refused(
        &path,
        with(|old, j| {
            let next = old.next.as_ref();
            (
                j.carry(&old.name),
                j.carry(next.map_or(&None, |next| &next.next)),
            )
        }),
        &["its function forgets a pointer that owns something"],
    );
    refused(
        &path,
        with(|old, j| {
            assert!(old.tries.get() != 3, "not the third");
            (j.carry(&old.name), j.carry(&old.next))
        }),
        &["counted Task.value: its function panicked: not the third (1 object)"],
    );
    refused(
        &path,
        Migration::new(),
        &[
            "value.closed: it is new, and has no default",
            "Task, now Job, of which nobody says that it was Task",
        ],
    );
    refused(
        &path,
        Migration::new().default_of("Queue", "closed", 2_u8),
        &["value.closed: its default is a u8, and it is PCell<bool>"],
    );
    assert!(two::P::open::<two::Entry>(&path, 0).is_err());
    let root = one::P::open::<one::Entry>(&path, 0).unwrap();
    one::P::transaction(|j| assert_eq!(root.lock(j).by_number.len(), TASKS as usize)).unwrap();
}

/// A function is for the type that it says, and no other one of its name.
#[test]
fn a_function_for_another_type_of_the_same_name_is_refused() {
    mod other {
        use durum::typed::*;
        durum::pool!(pub P);

        #[derive(PSafe)]
        #[repr(C)]
        pub struct Task {
            pub name: PString<P>,
        }
    }
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path, Engine::Hybrid);
    let migration = Migration::new()
        .default_of("Queue", "closed", false)
        .object(|old: &other::Task, j| two::Job {
            deadline: 0,
            boss: j.cell(None),
            attempts: j.cell(0),
            name: j.carry(&old.name),
            after: None,
            state: j.cell(two::State::Waiting),
            length: 0,
        });
    refused(
        &path,
        migration,
        &[
            "counted Task.value: its function takes another type than the pool has, of the name Task",
        ],
    );
}

#[test]
fn a_pool_of_several_in_a_store_is_migrated_by_name() {
    mod log {
        use durum::typed::*;
        durum::pool!(pub Log);
        #[derive(PSafe, Root)]
        #[repr(C)]
        pub struct Head {
            pub at: PCell<u32, Log>,
        }
    }
    mod now {
        use durum::typed::*;
        durum::pool!(pub Log);
        #[derive(PSafe, Root)]
        #[repr(C)]
        pub struct Head {
            pub begin: u64,
            pub at: PCell<u64, Log>,
        }
    }
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path, Engine::Shadow);
    let store = Store::open(&path, StoreOptions::default()).unwrap();
    let root = log::Log::open_in::<log::Head>(&store, "log", Flags::CREATE).unwrap();
    log::Log::transaction(|j| root.at.set(5, j)).unwrap();
    root.close().unwrap();
    store.close().unwrap();
    // The value of a cell has other bits, of which the name of the cell's type speaks.
    let migration = Migration::new()
        .pool("log")
        .default_of("Head", "begin", 9_u64);
    let refused = now::Log::migrate::<now::Head>(&path, &migration).unwrap_err();
    assert!(
        refused.to_string().contains("PCell<u32>, now PCell<u64>"),
        "{refused}"
    );
    let migration = migration.object(|old: &log::Head, j| now::Head {
        begin: 9,
        at: j.cell(old.at.get().into()),
    });
    now::Log::migrate::<now::Head>(&path, &migration).unwrap();
    let store = Store::open(&path, StoreOptions::default()).unwrap();
    let root = now::Log::open_in::<now::Head>(&store, "log", 0).unwrap();
    assert_eq!((root.begin, root.at.get()), (9, 5));
}

/// What becomes of an object is found along fields of the same names. A pointer that was carried over to a field of
/// another one leads to what it says, or is told.
#[test]
fn a_pointer_leads_to_what_its_type_says() {
    mod was {
        use durum::typed::*;
        durum::pool!(pub P);
        #[derive(PSafe)]
        #[repr(C)]
        pub struct Leaf {
            pub n: u32,
        }
        #[derive(PSafe, Root)]
        #[repr(C)]
        pub struct Head {
            pub one: PRefCell<Option<Parc<Leaf, P>>, P>,
        }
    }
    mod is {
        use durum::typed::*;
        durum::pool!(pub P);
        #[derive(PSafe)]
        #[repr(C)]
        pub struct Leaf {
            pub n: u64,
            pub more: u64,
        }
        #[derive(PSafe, Root)]
        #[repr(C)]
        pub struct Head {
            pub other: PRefCell<Option<Parc<Leaf, P>>, P>,
        }
        /// The same, which says so.
        pub mod said {
            use durum::typed::*;
            durum::pool!(pub P);
            #[derive(PSafe)]
            #[repr(C)]
            pub struct Leaf {
                pub n: u64,
                pub more: u64,
            }
            #[derive(PSafe, Root)]
            #[repr(C)]
            pub struct Head {
                #[durum(was = "one")]
                pub other: PRefCell<Option<Parc<Leaf, P>>, P>,
            }
        }
    }
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    let root = was::P::open::<was::Head>(&path, Flags::CREATE).unwrap();
    was::P::transaction(|j| {
        *root.one.borrow_mut(j) = Some(Parc::new(was::Leaf { n: 5 }, j));
    })
    .unwrap();
    root.close().unwrap();
    let migration = Migration::new().object(|old: &was::Head, j| is::Head {
        other: j.carry(&old.one),
    });
    let refused = is::P::migrate::<is::Head>(&path, migration).unwrap_err();
    let part = "counted Leaf: a pointer leads to it whose type says something else";
    assert!(refused.to_string().contains(part), "{refused}");
    let migration = Migration::new().default_of("Leaf", "more", 7_u64);
    is::said::P::migrate::<is::said::Head>(&path, migration).unwrap();
    let root = is::said::P::open::<is::said::Head>(&path, 0).unwrap();
    let leaf = root.other.borrow();
    assert!(
        leaf.as_ref()
            .is_some_and(|leaf| (leaf.n, leaf.more) == (5, 7))
    );
}
