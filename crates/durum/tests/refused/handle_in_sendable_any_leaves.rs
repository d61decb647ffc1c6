use durum::typed::*;
use std::any::Any;
durum::pool!(P);

fn main() {
    //~ Pbox<i32, P>` cannot be sent between threads safely
    let _ = P::transaction(|j| Box::new(Pbox::new(1, j)) as Box<dyn Any + Send>);
}
