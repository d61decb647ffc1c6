// A transaction's error names the closure only, and tells how to have the variable named: this is it.
use durum::typed::*;
durum::pool!(P);

fn main() {
    let mut done = false;
    //~ `done`, as it is a captured variable in a `Fn` closure
    let _: &dyn Fn(&Journal<P>) = &|_| done = true;
    assert!(done);
}
