use durum::typed::*;
use std::cell::Cell;
durum::pool!(P);

fn main() {
    let count = Cell::new(0);
    //~ a transaction cannot capture
    P::transaction(|_| count.set(1)).unwrap();
}
