// Listing 2 of the Corundum paper, line 6: a transaction cannot change volatile memory.
use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ the compiler names a variable that the closure changes, if that is written as `let _: &dyn Fn(&_) -> _ = &|j| ...;`
    let mut done = false;
    //~ a transaction cannot capture `{closure
    //~ return a value from the transaction instead
    P::transaction(|_| done = true).unwrap();
    assert!(done);
}
