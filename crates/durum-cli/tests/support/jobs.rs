//! A store of the typed interface, with one of each collection.

use durum::typed::*;

durum::pool!(P);

#[derive(PSafe)]
#[repr(C, u8)]
enum State {
    Waiting,
    Taken { by: u32 },
}

#[derive(PSafe)]
#[repr(C)]
struct Task {
    name: PString<P>,
    priority: u8,
    state: State,
    worker: Option<Parc<Worker, P>>,
}

#[derive(PSafe)]
#[repr(C)]
struct Worker {
    name: PString<P>,
    boss: Option<PWeak<Worker, P>>,
}

#[derive(PSafe, Root)]
#[repr(C)]
struct Jobs {
    tasks: PHashMap<u64, Task, P>,
    by_name: PBTreeMap<PString<P>, u64, P>,
    history: PVec<PString<P>, P>,
    total: PCell<u64, P>,
    first: Option<Parc<Worker, P>>,
}

/// A closed store with a pool "words" of the typed interface.
pub fn make_jobs(path: &std::path::Path) {
    let root = P::open::<PMutex<Jobs, P>>(path, Flags::CREATE).unwrap();
    P::transaction(|j| {
        let mut jobs = root.lock(j);
        let boss = Parc::new(
            Worker {
                name: PString::new("Ada", j),
                boss: None,
            },
            j,
        );
        for number in 0..20_000_u64 {
            let name = format!("job-{number}");
            let task = Task {
                name: PString::new(&name, j),
                priority: (number % 7) as u8,
                state: match number % 2 {
                    0 => State::Waiting,
                    _ => State::Taken { by: number as u32 },
                },
                worker: (number == 2203).then(|| {
                    let name = PString::new("Bob\u{1b}[2J", j);
                    let boss = Some(boss.downgrade(j));
                    Parc::new(Worker { name, boss }, j)
                }),
            };
            jobs.tasks.insert(number, task, j);
            if number < 40 {
                jobs.by_name.insert(PString::new(&name, j), number, j);
            }
        }
        jobs.history.push(PString::new("", j), j);
        jobs.history.push(PString::new(&"long ".repeat(50), j), j);
        jobs.total.set(7, j);
        jobs.first = Some(boss);
    })
    .unwrap();
}
