use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ Pbox<{integer}, P>>` cannot leave a transaction
    //~ store it in the pool, in something that the root reaches; to find it again from volatile memory, return what `demote()` gives (`VWeak`)
    let _ = P::transaction(|j| vec![Pbox::new(1, j)]);
}
