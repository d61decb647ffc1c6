use durum::typed::*;
use std::rc::Rc;
durum::pool!(P);

fn main() {
    //~ `Rc<u64>` cannot live in a pool
    let _ = P::open::<PRefCell<Option<Rc<u64>>, P>>("store", 0);
}
