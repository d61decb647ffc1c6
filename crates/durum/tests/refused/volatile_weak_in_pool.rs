use durum::typed::*;
durum::pool!(P);

fn main() {
    P::transaction(|j| {
        let object = Parc::new(1, j);
        //~ cannot live in a pool
        let _ = Pbox::new(object.demote(), j);
    })
    .unwrap();
}
