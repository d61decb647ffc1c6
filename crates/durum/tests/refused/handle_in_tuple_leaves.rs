use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ cannot leave a transaction
    let _ = P::transaction(|j| (1, Some(Pbox::new(1, j))));
}
