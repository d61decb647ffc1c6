//! Types change, data stays: versions of a program whose later ones understand what the earlier ones have stored, with
//! nothing written anew.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

use std::path::Path;
use std::sync::Mutex;

use durum::typed::{Flags, OpenOptions, PoolType};
use durum::{Engine, Error, PoolOptions, Store, StoreOptions};

const ENGINES: [Engine; 3] = [Engine::Shadow, Engine::Hybrid, Engine::Twin];

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
        pub tries: PCell<u64, P>,
        pub state: PRefCell<State, P>,
        pub later: Reserved<24>,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Queue {
        pub tasks: PVec<Parc<Task, P>, P>,
        pub by_number: PHashMap<u64, Parc<Task, P>, P>,
    }

    pub type Entry = PMutex<Queue, P>;

    pub fn add(queue: &Entry, name: &str, number: u64) {
        P::transaction(|j| {
            let task = Task {
                name: PString::new(name, j),
                tries: PCell::new(number, j),
                state: PRefCell::new(State::Waiting, j),
                later: Reserved::new(),
            };
            let task = Parc::new(task, j);
            let mut queue = queue.lock(j);
            queue.by_number.insert(number, task.pclone(j), j);
            queue.tasks.push(task, j);
        })
        .unwrap();
    }
}

/// A case has come, a field, and other names.
mod two {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe)]
    #[repr(C, u8)]
    #[allow(dead_code, reason = "an earlier version has made some of them")]
    pub enum State {
        Waiting,
        #[durum(was = "Running")]
        Busy {
            #[durum(was = "worker")]
            by: u64,
        },
        Done {
            after: Option<Parc<Job, P>>,
        },
    }

    #[derive(PSafe)]
    #[durum(was = "Task")]
    #[repr(C)]
    pub struct Job {
        pub name: PString<P>,
        #[durum(was = "tries")]
        pub attempts: PCell<u64, P>,
        pub state: PRefCell<State, P>,
        #[durum(in_reserved)]
        pub deadline: PCell<u64, P>,
        pub later: Reserved<16>,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Queue {
        pub tasks: PVec<Parc<Job, P>, P>,
        pub by_number: PHashMap<u64, Parc<Job, P>, P>,
    }

    pub type Entry = PMutex<Queue, P>;
}

/// The rest of what was reserved is taken.
mod three {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe)]
    #[repr(C, u8)]
    #[allow(dead_code, reason = "an earlier version has made some of them")]
    pub enum State {
        Waiting,
        #[durum(was = "Running")]
        Busy {
            #[durum(was = "worker")]
            by: u64,
        },
        Done {
            after: Option<Parc<Job, P>>,
        },
    }

    #[derive(PSafe)]
    #[durum(was = "Task")]
    #[repr(C)]
    pub struct Job {
        pub name: PString<P>,
        #[durum(was = "tries")]
        pub attempts: PCell<u64, P>,
        pub state: PRefCell<State, P>,
        #[durum(in_reserved)]
        pub deadline: PCell<u64, P>,
        #[durum(in_reserved)]
        pub next: PRefCell<Option<Parc<Job, P>>, P>,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Queue {
        pub tasks: PVec<Parc<Job, P>, P>,
        pub by_number: PHashMap<u64, Parc<Job, P>, P>,
    }

    pub type Entry = PMutex<Queue, P>;
}

fn with(engine: Engine) -> OpenOptions {
    OpenOptions::new().create(true).engine(engine)
}

/// Three tasks of the first version, the second of which is at work.
fn begun(path: &Path, engine: Engine) {
    let queue = one::P::open::<one::Entry>(path, with(engine)).unwrap();
    for (number, name) in [(1, "one"), (2, "two"), (3, "three")] {
        one::add(&queue, name, number);
    }
    one::P::transaction(|j| {
        let queue = queue.lock(j);
        *queue.tasks[1].state.borrow_mut(j) = one::State::Running { worker: 7 };
    })
    .unwrap();
    queue.close().unwrap();
}

/// The second version comes: the last task is done, after the first.
fn goes_on(path: &Path) {
    let queue = two::P::open::<two::Entry>(path, 0).unwrap();
    two::P::transaction(|j| {
        let queue = queue.lock(j);
        let [first, second, third] = [1, 2, 3].map(|number| &queue.by_number[&number]);
        assert_eq!((&*first.name, first.attempts.get()), ("one", 1));
        assert!(matches!(*second.state.borrow(), two::State::Busy { by: 7 }));
        for job in queue.tasks.iter() {
            assert_eq!(job.deadline.get(), 0);
        }
        third.deadline.set(33, j);
        let after = Some(first.pclone(j));
        *third.state.borrow_mut(j) = two::State::Done { after };
    })
    .unwrap();
    queue.close().unwrap();
}

fn is_sound(path: &Path) {
    let found = durum_service::check(path, &Default::default())
        .unwrap()
        .findings;
    assert_eq!(found, []);
}

/// A pool type is open once at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_program_goes_on_in_its_third_version_with_what_the_first_has_stored() {
    let _alone = ALONE.lock();
    for engine in ENGINES {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("store");
        begun(&path, engine);
        goes_on(&path);
        // Objects of the first version have the new case, and lead on by it.
        is_sound(&path);
        let queue = three::P::open::<three::Entry>(&path, 0).unwrap();
        three::P::transaction(|j| {
            let queue = queue.lock(j);
            let third = &queue.tasks[2];
            assert_eq!((third.deadline.get(), third.attempts.get()), (33, 3));
            let state = third.state.borrow();
            let three::State::Done { after: Some(first) } = &*state else {
                panic!("it is done");
            };
            assert_eq!(&*first.name, "one");
            let next = &queue.tasks[1].next;
            assert!(next.borrow().is_none());
            *next.borrow_mut(j) = Some(third.pclone(j));
        })
        .unwrap();
        queue.close().unwrap();
        is_sound(&path);
        // Neither version before understands that.
        let errors = [
            one::P::open::<one::Entry>(&path, 0).unwrap_err(),
            two::P::open::<two::Entry>(&path, 0).unwrap_err(),
        ];
        for error in errors {
            let told = error.to_string();
            assert!(matches!(error, Error::OldRootType { .. }), "{told}");
            assert!(told.contains("+ next: PRefCell<Option<Parc"), "{told}");
            assert!(told.contains("use that version"), "{told}");
        }
        // And all of it goes, counted as ever.
        let queue = three::P::open::<three::Entry>(&path, 0).unwrap();
        three::P::transaction(|j| {
            let mut queue = queue.lock(j);
            queue.tasks.clear();
            queue.by_number.clear();
        })
        .unwrap();
        queue.close().unwrap();
        is_sound(&path);
    }
}

/// What several threads have.
mod shared {
    pub mod one {
        use durum::typed::*;

        durum::pool!(pub P);

        #[derive(PSafe)]
        #[repr(C)]
        pub struct Job {
            pub number: u64,
            pub later: Reserved<8>,
        }

        pub type Entry = PMutex<PVec<Parc<Job, P>, P>, P>;
    }

    pub mod two {
        use durum::typed::*;

        durum::pool!(pub P);

        #[derive(PSafe)]
        #[repr(C)]
        pub struct Job {
            pub number: u64,
            #[durum(in_reserved)]
            pub before: Option<Pbox<u64, P>>,
        }

        pub type Entry = PMutex<PVec<Parc<Job, P>, P>, P>;
    }
}

/// A drop that was put off names the type that the object had.
#[test]
fn references_that_the_first_version_put_off_are_dropped_by_the_second() {
    use durum::typed::{Parc, Reserved};
    use shared::{one, two};

    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let [path, copy] = ["store", "copy"].map(|name| dir.path().join(name));
    let jobs = one::P::open::<one::Entry>(&path, with(Engine::Shadow)).unwrap();
    let weak = one::P::transaction(|j| {
        let later = Reserved::new();
        let job = Parc::new(one::Job { number: 7, later }, j);
        let weak = job.demote();
        jobs.lock(j).push(job, j);
        weak
    })
    .unwrap();
    let (pinned, dropped) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let result = one::P::transaction(|j| {
                let job = weak.promote(j).expect("it is there");
                pinned.wait();
                dropped.wait();
                assert_eq!(job.number, 7);
            });
            result.unwrap();
        });
        pinned.wait();
        one::P::transaction(|j| jobs.lock(j).clear()).unwrap();
        // As a crash would leave it.
        copy_all(&path, &copy);
        dropped.wait();
    });
    jobs.close().unwrap();
    let objects = |path: &Path| {
        let found = durum_service::find_garbage(path, &Default::default()).unwrap();
        found.pools.iter().map(|pool| pool.objects).sum::<u64>()
    };
    let jobs = two::P::open::<two::Entry>(&copy, 0).unwrap();
    jobs.close().unwrap();
    assert_eq!(objects(&copy), 0, "nothing was left for gc");
    is_sound(&copy);
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to),
            false => _ = std::fs::copy(entry.path(), to).unwrap(),
        }
    }
}

/// What is read only is understood, and nothing of it is recorded: the first version can still come.
#[test]
fn a_reader_of_the_next_version_changes_nothing() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    begun(&path, Engine::Shadow);
    let queue = two::P::open::<two::Entry>(&path, Flags::READ_ONLY).unwrap();
    queue.close().unwrap();
    let queue = one::P::open::<one::Entry>(&path, 0).unwrap();
    queue.close().unwrap();
    goes_on(&path);
    let reading = one::P::open::<one::Entry>(&path, Flags::READ_ONLY);
    assert!(matches!(reading, Err(Error::OldRootType { .. })));
}

/// The untyped interface.
mod plain {
    pub mod one {
        #[repr(C)]
        pub struct Node {
            pub value: u64,
            pub next: *mut Node,
            pub later: durum::typed::Reserved<8>,
        }
        durum::describe!(Node as "node" { value, next, later });
    }

    pub mod two {
        #[repr(C)]
        pub struct Item {
            pub number: u64,
            pub next: *mut Item,
            pub previous: *mut Item,
        }
        durum::describe!(Item as "item" was "node" { number was "value", next, previous in_reserved });
    }

    /// Without the words.
    pub mod unsaid {
        #[repr(C)]
        pub struct Item {
            pub number: u64,
            pub next: *mut Item,
            pub previous: *mut Item,
        }
        durum::describe!(Item as "node" { number, next, previous });
    }
}

#[test]
fn the_untyped_interface_says_it_in_its_description() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.create_pool("pool", PoolOptions::new()).unwrap();
    let root = pool.root::<plain::one::Node>().unwrap();
    let node = pool
        .transaction(|tx| unsafe {
            let node = tx.alloc::<plain::one::Node>()?;
            node.write_bytes(0, 1);
            tx.set(&raw mut (*root).value, 7)?;
            tx.set(&raw mut (*root).next, node)?;
            Ok::<_, Error>(node)
        })
        .unwrap();
    let error = pool.root::<plain::unsaid::Item>().unwrap_err();
    let told = error.to_string();
    let Error::RootType { obstacle, .. } = error else {
        panic!("{told}");
    };
    let expected = "node.value: now number, which does not say that it was value";
    assert_eq!(obstacle.as_deref(), Some(expected));
    assert!(
        told.contains(expected) && told.contains("docs/how-to/change-types.md"),
        "{told}"
    );

    let item = pool.root::<plain::two::Item>().unwrap();
    assert_eq!(
        unsafe { ((*item).number, (*item).previous.is_null()) },
        (7, true)
    );
    let id = <plain::two::Item as durum::Described>::description().id();
    assert_eq!(
        unsafe { pool.object_at(node.cast()) }
            .unwrap()
            .unwrap()
            .type_id,
        id
    );
    assert_eq!(pool.root_type().unwrap(), Some(id));
    let error = pool.root::<plain::one::Node>().unwrap_err();
    assert!(matches!(error, Error::OldRootType { .. }), "{error}");
}
