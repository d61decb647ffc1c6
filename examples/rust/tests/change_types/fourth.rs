//! The fourth version: a job has a priority in front, and the queue knows how often all of them were tried. Its pool is
//! made anew.

use durum::typed::*;

use super::third;

durum::pool!(pub P);

#[derive(PSafe)]
#[repr(C, u8)]
pub enum State {
    Waiting,
    Running { worker: u64 },
    Done { at: u64 },
}

#[derive(PSafe)]
#[repr(C)]
pub struct Job {
    pub priority: PCell<u8, P>,
    pub name: PString<P>,
    pub state: PRefCell<State, P>,
    pub attempts: PCell<u32, P>,
    pub deadline: PCell<u64, P>,
    pub after: Option<Parc<Job, P>>,
}

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Queue {
    pub jobs: PRefCell<PVec<Parc<Job, P>, P>, P>,
    pub tried: PCell<u32, P>,
}

pub fn open(path: &std::path::Path) -> durum::Result<RootGuard<Queue, P>> {
    if let Err(durum::Error::RootType { .. }) = P::open::<Queue>(path, Flags::OPEN) {
        let migration = Migration::new().default_of("Job", "priority", 5_u8);
        let migration = migration.object(|old: &third::Queue, j| Queue {
            tried: j.cell(old.jobs.borrow().iter().map(|job| job.attempts.get()).sum()),
            jobs: j.carry(&old.jobs),
        });
        P::migrate::<Queue>(path, migration)?;
    }
    P::open(path, Flags::OPEN)
}
