use durum::typed::*;
use std::cell::RefCell;
use std::rc::Rc;
durum::pool!(P);

fn main() {
    let shared = Rc::new(RefCell::new(0));
    //~ a transaction cannot capture
    P::transaction(|_| *shared.borrow_mut() = 1).unwrap();
}
