use durum::typed::*;
use std::sync::Mutex;
durum::pool!(P);

fn main() {
    let kept: Mutex<Option<&Journal<P>>> = Mutex::new(None);
    //~ borrowed data escapes outside of closure
    P::transaction(|j| *kept.lock().unwrap() = Some(j)).unwrap();
}
