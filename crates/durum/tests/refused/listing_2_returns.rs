// Listing 2, line 9: a handle cannot leave a transaction.
use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ Pbox<{integer}, P>` cannot leave a transaction
    //~ VWeak
    let _p1 = P::transaction(|j| Pbox::new(1, j)).unwrap();
}
