//! The third version: a task is a job now, and may come after another one.

use durum::typed::*;

durum::pool!(pub P);

#[derive(PSafe)]
#[repr(C, u8)]
pub enum State {
    Waiting,
    Running { worker: u64 },
    Done { at: u64 },
}

#[derive(PSafe)]
#[durum(was = "Task")]
#[repr(C)]
pub struct Job {
    pub name: PString<P>,
    pub state: PRefCell<State, P>,
    #[durum(was = "tries")]
    pub attempts: PCell<u32, P>,
    #[durum(in_reserved)]
    pub deadline: PCell<u64, P>,
    #[durum(in_reserved)]
    pub after: Option<Parc<Job, P>>,
}

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Queue {
    #[durum(was = "tasks")]
    pub jobs: PRefCell<PVec<Parc<Job, P>, P>, P>,
}
