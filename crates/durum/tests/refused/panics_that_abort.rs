// A transaction that finds no room leaves its closure by unwinding, to return the error.
use durum::typed::*;

//~ panic = "abort"
//~ 1 error
//~ typed pools need unwinding
//~ Remove `panic = "abort"` from the profile
//~ or use the untyped interface
durum::pool!(P);

fn main() {
    let root = P::open::<PCell<u64, P>>("store", 0).unwrap();
    P::transaction(|j| root.set(1, j)).unwrap();
}
