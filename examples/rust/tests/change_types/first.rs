//! The first version.

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
    pub state: PRefCell<State, P>,
    pub tries: PCell<u32, P>,
    pub later: Reserved<20>,
}

#[derive(PSafe, Root)]
#[repr(C)]
pub struct Queue {
    pub tasks: PRefCell<PVec<Parc<Task, P>, P>, P>,
}

impl Queue {
    pub fn add(&self, name: &str, j: &Journal<P>) {
        let task = Task {
            name: PString::new(name, j),
            state: PRefCell::new(State::Waiting, j),
            tries: PCell::new(0, j),
            later: Reserved::new(),
        };
        self.tasks.borrow_mut(j).push(Parc::new(task, j), j);
    }
}
