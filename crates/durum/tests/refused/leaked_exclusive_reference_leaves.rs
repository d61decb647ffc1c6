use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ Pbox<{integer}, P>` cannot leave a transaction
    let _ = P::transaction(|j| Box::leak(Box::new(Pbox::new(1, j))));
}
