use durum::typed::*;
durum::pool!(P);

fn main() {
    P::transaction(|j| {
        //~ `&str` cannot live in a pool
        let _ = Pbox::new("text", j);
    })
    .unwrap();
}
