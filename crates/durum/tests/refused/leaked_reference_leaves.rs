use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ cannot leave a transaction
    let _ = P::transaction(|j| &*Box::leak(Box::new(Pbox::new(1, j))));
}
