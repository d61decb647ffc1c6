use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PRefCell<u64, P>>("store", 0).unwrap();
    //~ `Later<'_, u64>` cannot leave a transaction
    let _ = P::transaction(|j| Box::leak(Box::new(root.borrow_mut(j))).later());
}
