use durum::typed::*;
use std::sync::Mutex;
durum::pool!(P);

//~ Journal<P>` is its transaction's own
static KEPT: Mutex<Option<&'static Journal<P>>> = Mutex::new(None);

fn main() {
    P::transaction(|j| *KEPT.lock().unwrap() = Some(j)).unwrap();
}
