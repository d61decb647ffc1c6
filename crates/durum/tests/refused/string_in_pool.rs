use durum::typed::*;
durum::pool!(P);

fn main() {
    P::transaction(|j| {
        //~ `String` cannot live in a pool
        //~ `PString`
        let _ = Pbox::new(String::new(), j);
    })
    .unwrap();
}
