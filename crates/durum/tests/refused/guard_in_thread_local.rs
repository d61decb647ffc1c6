use durum::typed::*;
use std::cell::RefCell;
durum::pool!(P);

thread_local! {
    static KEPT: RefCell<Option<PMutexGuard<'static, u64>>> = const { RefCell::new(None) };
}

fn keep(root: &'static RootGuard<PMutex<u64, P>, P>) {
    //~ borrowed data escapes outside of closure
    P::transaction(|j| KEPT.with(|kept| *kept.borrow_mut() = Some(root.lock(j)))).unwrap();
}

fn main() {
    let _ = keep;
}
