use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PRefCell<u64, P>>("store", 0).unwrap();
    P::transaction(|j| {
        let mut guard = root.borrow_mut(j);
        let first = guard.later();
        //~ cannot borrow `guard` as mutable more than once at a time
        let second = guard.later();
        std::mem::swap(first.change(), second.change());
    })
    .unwrap();
}
