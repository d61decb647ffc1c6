use durum::typed::*;
use std::sync::Mutex;
durum::pool!(P);

fn keep<'a>(root: &'a RootGuard<PMutex<u64, P>, P>, kept: &Mutex<Option<PMutexGuard<'a, u64>>>) {
    //~ borrowed data escapes outside of closure
    P::transaction(|j| *kept.lock().unwrap() = Some(root.lock(j))).unwrap();
}

fn main() {
    let _ = keep;
}
