//! The second version: tasks get a deadline, and can be done; `tries` has another name.

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
#[repr(C)]
pub struct Task {
    pub name: PString<P>,
    pub state: PRefCell<State, P>,
    #[durum(was = "tries")]
    pub attempts: PCell<u32, P>,
    #[durum(in_reserved)]
    pub deadline: PCell<u64, P>,
    pub later: Reserved<8>,
}

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Queue {
    pub tasks: PRefCell<PVec<Parc<Task, P>, P>, P>,
}
