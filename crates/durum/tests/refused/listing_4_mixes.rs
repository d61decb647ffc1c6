// Listing 4: a pointer of one pool cannot be stored in another.
use durum::typed::*;
durum::pool!(P1);
durum::pool!(P2);

fn mix(p1: &PCell<Pbox<i32, P1>, P1>, j1: &Journal<P1>, j2: &Journal<P2>) {
    let p2 = Pbox::new(1, j2);
    //~ expected `Pbox<i32, P1>`, found `Pbox<{integer}, P2>`
    p1.set(p2, j1);
}

fn main() {
    let _ = mix;
}
