use durum::typed::*;
use std::sync::Mutex;
durum::pool!(P);

type Root = RootGuard<PRefCell<u64, P>, P>;

fn keep<'a>(root: &'a Root, kept: &Mutex<Option<Later<'a, u64>>>) {
    P::transaction(|j| {
        let guard = Box::leak(Box::new(root.borrow_mut(j)));
        //~ borrowed data escapes outside of closure
        *kept.lock().unwrap() = Some(guard.later());
    })
    .unwrap();
}

fn main() {
    let _ = keep;
}
