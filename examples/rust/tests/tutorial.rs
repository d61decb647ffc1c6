//! The code in docs/tutorials/rust.md is compiled and run, and this is where: here, in `src/agenda.rs`,
//! `src/bin/counter.rs` and `tests/agenda.rs`; what must not compile is in the tests of the crate `durum`.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A place for a store, gone with the guard.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    (dir, path)
}

#[test]
fn the_counter_counts_its_runs() {
    let (dir, _) = place();
    for run in 1..=3 {
        let program = Command::new(env!("CARGO_BIN_EXE_counter"))
            .current_dir(dir.path())
            .output();
        assert_eq!(program.unwrap().stdout, format!("run {run}\n").as_bytes());
    }
    support::assert_comes_back(&dir.path().join("counter.store"));
}

#[test]
fn the_agenda_is_there_again() -> durum::Result<()> {
    use durum::typed::*;
    use durum_examples::agenda::{Agenda, P};

    let (_dir, path) = place();
    {
        let agenda = P::open::<Agenda>(&path, Flags::CREATE)?;
        P::transaction(|j| {
            agenda.add("write", j);
            agenda.add("read", j);
        })?;
    }
    let agenda = P::open::<Agenda>(&path, Flags::OPEN)?;
    assert_eq!(agenda.tasks(), ["write", "read"]);
    assert_eq!(P::transaction(|j| agenda.take(j))?, Some("write".into()));
    assert_eq!((agenda.tasks().len(), agenda.added()), (1, 2));
    agenda.close()
}

mod changed_type {
    use super::place;
    use durum::Error;
    use durum::typed::*;

    durum::pool!(P);
    durum::pool!(Q);

    /// As it was.
    #[derive(PSafe, Root)]
    #[repr(C)]
    struct Account {
        balance: PCell<i64, P>,
    }

    /// As it is now, in a pool of its own.
    #[derive(PSafe, Root)]
    #[repr(C)]
    struct LimitedAccount {
        balance: PCell<i64, Q>,
        limit: PCell<i64, Q>,
    }

    fn move_to(new: &LimitedAccount, old: &Account) -> durum::Result<()> {
        let balance = old.balance.get();
        Q::transaction(|j| {
            new.balance.set(balance, j);
            new.limit.set(100, j);
        })
    }

    #[test]
    fn what_an_older_type_holds_is_copied_to_a_newer_one() -> durum::Result<()> {
        let ((_dir, old_path), (_other_dir, new_path)) = (place(), place());
        {
            let old = P::open::<Account>(&old_path, Flags::CREATE)?;
            P::transaction(|j| old.balance.set(7, j))?;
        }
        match Q::open::<LimitedAccount>(&old_path, Flags::OPEN) {
            Err(error @ Error::RootType { .. }) => {
                let text = error.to_string();
                assert!(text.contains("docs/how-to/change-types.md"), "{text}");
            }
            other => panic!("{:?}", other.err()),
        }
        {
            let old = P::open::<Account>(&old_path, Flags::OPEN)?;
            let new = Q::open::<LimitedAccount>(&new_path, Flags::CREATE)?;
            move_to(&new, &old)?;
        }
        let new = Q::open::<LimitedAccount>(&new_path, Flags::OPEN)?;
        assert_eq!((new.balance.get(), new.limit.get()), (7, 100));
        new.close()
    }
}

mod collections {
    use super::place;
    use durum::typed::*;

    durum::pool!(P);

    #[derive(PSafe, Root)]
    #[repr(C)]
    struct Stock {
        counts: PRefCell<PHashMap<PString<P>, u64, P>, P>,
        by_day: PRefCell<PBTreeMap<u32, PVec<u64, P>, P>, P>,
    }

    fn sell(stock: &Stock, day: u32, article: &str, count: u64) -> durum::Result<()> {
        P::transaction(|j| {
            let mut counts = stock.counts.borrow_mut(j);
            *counts.entry(PString::new(article, j), j).or_insert(0) += count;
            let mut days = stock.by_day.borrow_mut(j);
            days.entry(day, j).or_default().push(count, j);
        })
    }

    fn sold_since(stock: &Stock, day: u32) -> u64 {
        let days = stock.by_day.borrow();
        days.range(day..).flat_map(|(_, counts)| counts).sum()
    }

    #[test]
    fn maps_are_as_in_std() -> durum::Result<()> {
        let (_dir, path) = place();
        let stock = P::open::<Stock>(&path, Flags::CREATE)?;
        sell(&stock, 1, "pears", 3)?;
        sell(&stock, 2, "plums", 5)?;
        sell(&stock, 3, "pears", 7)?;
        assert_eq!(stock.counts.borrow().get("pears"), Some(&10));
        assert_eq!(sold_since(&stock, 2), 12);
        stock.close()
    }
}

mod errors {
    use super::place;
    use durum::typed::*;

    durum::pool!(P);

    type Prices = PRefCell<PVec<u64, P>, P>;

    #[derive(Debug)]
    enum OrderError {
        Unknown,
        Durum(durum::Error),
    }

    impl From<durum::Error> for OrderError {
        fn from(error: durum::Error) -> Self {
            Self::Durum(error)
        }
    }

    fn raise(prices: &Prices, which: &[usize]) -> Result<u64, OrderError> {
        P::try_transaction(|j| {
            let mut prices = prices.borrow_mut(j);
            for at in which {
                *prices.get_mut(*at).ok_or(OrderError::Unknown)? += 1;
            }
            Ok(prices.iter().sum())
        })
    }

    #[test]
    fn an_error_changes_nothing() {
        let (_dir, path) = place();
        let prices = P::open::<Prices>(&path, Flags::CREATE).unwrap();
        P::transaction(|j| prices.borrow_mut(j).extend([10, 20, 30], j)).unwrap();
        assert_eq!(raise(&prices, &[0, 2]).unwrap(), 62);
        assert!(matches!(raise(&prices, &[1, 3]), Err(OrderError::Unknown)));
        assert_eq!(*prices.borrow(), [11, 20, 31]);

        let panicked = std::panic::catch_unwind(|| {
            P::transaction(|j| {
                prices.borrow_mut(j).clear();
                panic!("halfway");
            })
        });
        assert!(panicked.is_err());
        assert_eq!(prices.borrow().len(), 3);
        let shown = OrderError::from(durum::Error::Aborted);
        assert!(matches!(shown, OrderError::Durum(durum::Error::Aborted)));
    }
}

mod sharing {
    use super::place;
    use durum::typed::*;

    durum::pool!(P, mod p);

    #[derive(PSafe)]
    #[repr(C)]
    struct Folder {
        name: PString<P>,
        inside: p::PRefCell<p::PVec<p::Prc<Folder>>>,
        /// Weak: a folder does not keep the one alive that it lies in.
        parent: p::PRefCell<Option<p::PWeak<Folder, Local>>>,
    }

    type Root = p::PRefCell<Option<p::Prc<Folder>>>;

    fn folder(name: &str, j: &p::Journal) -> p::Prc<Folder> {
        let folder = Folder {
            name: PString::new(name, j),
            inside: PRefCell::default(),
            parent: PRefCell::default(),
        };
        Prc::new(folder, j)
    }

    fn put(child: Prc<Folder, P>, parent: &Prc<Folder, P>, j: &Journal<P>) {
        *child.parent.borrow_mut(j) = Some(parent.downgrade(j));
        parent.inside.borrow_mut(j).push(child, j);
    }

    fn path(folder: &Folder, j: &Journal<P>) -> String {
        let parent = folder.parent.borrow();
        match parent.as_ref().and_then(|parent| parent.upgrade(j)) {
            Some(parent) => format!("{}/{}", path(&parent, j), folder.name),
            None => folder.name.to_string(),
        }
    }

    #[test]
    fn folders_know_where_they_are() -> durum::Result<()> {
        let (_dir, store) = place();
        let root = P::open::<Root>(&store, Flags::CREATE)?;
        let shown = P::transaction(|j| {
            let (top, letters) = (folder("top", j), folder("letters", j));
            put(letters.pclone(j), &top, j);
            assert_eq!(letters.strong_count(j), 2);
            *root.borrow_mut(j) = Some(top);
            path(&letters, j)
        })?;
        assert_eq!(shown, "top/letters");
        P::transaction(|j| *root.borrow_mut(j) = None)?;
        root.close()
    }
}

mod threads {
    use super::place;
    use durum::typed::*;

    durum::pool!(P);

    type Accounts = [PMutex<i64, P>; 4];

    fn transfer(accounts: &Accounts, from: usize, to: usize, sum: i64) -> durum::Result<bool> {
        P::transaction(|j| {
            // Everybody locks in the same order, so that nobody waits for somebody who waits.
            let mut first = accounts[from.min(to)].lock(j);
            let mut second = accounts[from.max(to)].lock(j);
            let (source, target) = match from < to {
                true => (&mut *first, &mut *second),
                false => (&mut *second, &mut *first),
            };
            if *source < sum {
                return false;
            }
            *source -= sum;
            *target += sum;
            true
        })
    }

    #[test]
    fn money_stays() -> durum::Result<()> {
        let (_dir, path) = place();
        let options = OpenOptions::new().create(true).find_deadlocks(true);
        let accounts = P::open::<Accounts>(&path, options)?;
        P::transaction(|j| accounts.iter().for_each(|account| *account.lock(j) = 100))?;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let accounts = &accounts;
                scope.spawn(move || {
                    for turn in 0..500 {
                        let (from, to) = ((thread + turn) % 4, (thread * turn) % 4);
                        if from != to {
                            transfer(accounts, from, to, 7).unwrap();
                        }
                    }
                });
            }
        });
        let sum: i64 = P::transaction(|j| accounts.iter().map(|account| *account.lock(j)).sum())?;
        assert_eq!(sum, 400);
        accounts.close()
    }
}

mod weak {
    use super::place;
    use durum::typed::*;

    durum::pool!(P);

    type Visits = PMutex<Option<Parc<PMutex<u64, P>, P>>, P>;

    fn visit(visits: &VWeak<PMutex<u64, P>, P>) -> durum::Result<bool> {
        P::transaction(|j| match visits.promote(j) {
            Some(visits) => {
                *visits.lock(j) += 1;
                true
            }
            None => false,
        })
    }

    #[test]
    fn visits_are_counted_while_they_are_there() -> durum::Result<()> {
        let (_dir, path) = place();
        let root = P::open::<Visits>(&path, Flags::CREATE)?;
        let visits = P::transaction(|j| {
            let visits = Parc::new(PMutex::new(0, j), j);
            let found_again = visits.demote();
            *root.lock(j) = Some(visits);
            found_again
        })?;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let visits = visits.clone();
                scope.spawn(move || assert!(visit(&visits).unwrap()));
            }
        });
        let count = |j: &Journal<P>| root.lock(j).as_ref().map(|visits| *visits.lock(j));
        assert_eq!(P::transaction(|j| count(j))?, Some(3));
        P::transaction(|j| *root.lock(j) = None)?;
        assert!(!visit(&visits)?);
        root.close()
    }
}

/// The lines of a text, without indentation.
fn lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join("\n")
}

#[test]
fn the_tutorial_shows_code_that_is_tested() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [
        "src",
        "src/bin",
        "tests",
        "../../crates/durum/tests/refused",
        "../../crates/durum-cli/tests/readme",
    ];
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(here.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let code: Vec<String> = files
        .map(|path| lines(&fs::read_to_string(path).unwrap()))
        .collect();
    let tutorial = fs::read_to_string(here.join("../../docs/tutorials/rust.md")).unwrap();
    let blocks: Vec<&str> = tutorial
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 10, "the tutorial has lost its code");
    for block in blocks {
        let wanted = lines(block);
        assert!(
            code.iter().any(|file| file.contains(&wanted)),
            "no tested file has this code any more:\n{block}"
        );
    }
}

#[test]
fn the_tests_that_the_page_on_safety_names_exist() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (programs, tests) = (
        top.join("crates/durum/tests/refused"),
        top.join("tests/typed"),
    );
    let page = fs::read_to_string(top.join("docs/reference/safety.md")).unwrap();
    let mut named = 0;
    for name in page.split('`').skip(1).step_by(2) {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c);
        if !name.chars().all(is_name) || !name.contains('_') {
            continue;
        }
        match name.split_once("::") {
            Some((module, test)) => {
                let file = tests.join(module).with_extension("rs");
                let text = fs::read_to_string(file).unwrap_or_default();
                assert!(text.contains(&format!("fn {test}(")), "no test {name}");
            }
            None => {
                let file = programs.join(name).with_extension("rs");
                assert!(file.exists(), "no program {name}");
            }
        }
        named += 1;
    }
    assert!(named > 40, "{named} tests are named");
}
