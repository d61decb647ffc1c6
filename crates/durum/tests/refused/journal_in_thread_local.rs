use durum::typed::*;
use std::cell::Cell;
durum::pool!(P);

thread_local! {
    static KEPT: Cell<Option<&'static Journal<P>>> = const { Cell::new(None) };
}

fn main() {
    //~ borrowed data escapes outside of closure
    P::transaction(|j| KEPT.set(Some(j))).unwrap();
}
