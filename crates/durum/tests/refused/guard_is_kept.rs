use durum::typed::*;
use std::sync::Mutex;
durum::pool!(P);

fn keep<'a>(root: &'a RootGuard<PRefCell<u64, P>, P>, kept: &Mutex<Option<PRefMut<'a, u64>>>) {
    //~ borrowed data escapes outside of closure
    P::transaction(|j| *kept.lock().unwrap() = Some(root.borrow_mut(j))).unwrap();
}

fn main() {
    let _ = keep;
}
