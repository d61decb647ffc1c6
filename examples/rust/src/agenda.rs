//! The tutorial's data structure: tasks in the order in which they were added.

use durum::typed::*;

durum::pool!(
    /// The pool that has the agenda.
    pub P
);

/// A place for a task.
pub type Link = PRefCell<Option<Pbox<Task, P>>, P>;

/// Something to do, and what comes after it.
#[derive(PSafe)]
#[repr(C)]
pub struct Task {
    text: PString<P>,
    next: Link,
}

/// What is to do.
#[derive(PSafe, Root)]
#[repr(C)]
pub struct Agenda {
    first: Link,
    added: PCell<u64, P>,
}

impl Agenda {
    /// Adds a task behind all others.
    pub fn add(&self, text: &str, j: &Journal<P>) {
        add_behind(&self.first, text, j);
        self.added.set(self.added.get() + 1, j);
    }

    /// Takes the first task.
    pub fn take(&self, j: &Journal<P>) -> Option<String> {
        let task = self.first.take(j)?;
        *self.first.borrow_mut(j) = task.next.take(j);
        Some(task.text.to_string())
    }

    /// The tasks, from the first to the last.
    pub fn tasks(&self) -> Vec<String> {
        let mut texts = Vec::new();
        collect(&self.first, &mut texts);
        texts
    }

    /// How many were ever added.
    pub fn added(&self) -> u64 {
        self.added.get()
    }
}

fn add_behind(link: &Link, text: &str, j: &Journal<P>) {
    let mut place = link.borrow_mut(j);
    match &*place {
        Some(task) => add_behind(&task.next, text, j),
        None => {
            let text = PString::new(text, j);
            let next = PRefCell::new(None, j);
            *place = Some(Pbox::new(Task { text, next }, j));
        }
    }
}

fn collect(link: &Link, texts: &mut Vec<String>) {
    if let Some(task) = &*link.borrow() {
        texts.push(task.text.to_string());
        collect(&task.next, texts);
    }
}
