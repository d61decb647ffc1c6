//! The fourth version: a job has a priority in front, and who is done says how often he has tried. Its pool is made
//! anew.

use durum::Error;
use durum::typed::*;

use super::third;

durum::pool!(pub P);

#[derive(PSafe)]
#[repr(C, u8)]
pub enum State {
    Waiting,
    Running { worker: u64 },
    Done { at: u64, tries: u32 },
}

#[derive(PSafe)]
#[repr(C)]
pub struct Job {
    pub priority: PCell<u8, P>,
    pub deadline: PCell<u64, P>,
    pub state: PRefCell<State, P>,
    pub name: PString<P>,
    pub after: Option<Parc<Job, P>>,
}

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Queue {
    pub jobs: PRefCell<PVec<Parc<Job, P>, P>, P>,
    pub closed: PCell<bool, P>,
}

fn migration() -> Migration<P> {
    let migration = Migration::new().default_of("Queue", "closed", false);
    migration.object(|old: &third::Job, j| Job {
        priority: j.cell(if old.attempts.get() > 1 { 9 } else { 5 }),
        deadline: j.carry(&old.deadline),
        state: j.cell(match *old.state.borrow() {
            third::State::Waiting => State::Waiting,
            third::State::Running { worker } => State::Running { worker },
            third::State::Done { at } => State::Done {
                at,
                tries: old.attempts.get(),
            },
        }),
        name: j.carry(&old.name),
        after: j.carry(&old.after),
    })
}

pub fn open(path: &std::path::Path) -> durum::Result<RootGuard<Queue, P>> {
    match P::open(path, Flags::OPEN) {
        Err(Error::RootType { .. }) => {
            P::migrate::<Queue>(path, migration())?;
            P::open(path, Flags::OPEN)
        }
        opened => opened,
    }
}
