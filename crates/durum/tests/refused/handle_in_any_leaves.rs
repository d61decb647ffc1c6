use durum::typed::*;
use std::any::Any;
durum::pool!(P);

fn main() {
    //~ cannot leave a transaction
    let _ = P::transaction(|j| Box::new(Pbox::new(1, j)) as Box<dyn Any>);
}
