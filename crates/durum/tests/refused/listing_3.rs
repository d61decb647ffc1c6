// Listing 3: only what is safe to be persistent lives in a pool.
use durum::typed::*;
durum::pool!(P1);

fn main() {
    P1::transaction(|j1| {
        let v = Box::new(10);
        //~ `Box<{integer}>` cannot live in a pool
        //~ use `Pbox`, `Prc`, `Parc` instead of `Box`, `Rc`, `Arc` and references
        let _p1 = Pbox::new(v, j1);
    })
    .unwrap();
}
