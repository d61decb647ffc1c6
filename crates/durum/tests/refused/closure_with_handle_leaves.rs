use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ cannot leave a transaction
    let _ = P::transaction(|j| {
        let object = Pbox::new(1, j);
        move || *object
    });
}
