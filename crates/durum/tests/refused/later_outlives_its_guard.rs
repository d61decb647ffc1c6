use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PRefCell<u64, P>>("store", 0).unwrap();
    P::transaction(|j| {
        let mut guard = root.borrow_mut(j);
        let later = guard.later();
        //~ cannot move out of `guard` because it is borrowed
        drop(guard);
        *later.change() = 1;
    })
    .unwrap();
}
