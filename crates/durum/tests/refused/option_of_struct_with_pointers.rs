use durum::typed::*;
durum::pool!(P);

#[derive(PSafe)]
#[repr(C)]
struct Entry {
    key: u64,
    value: Pbox<u64, P>,
}

fn main() {
    //~ an `Option` in a pool cannot hold `Entry`
    //~ for others `Option<Pbox<_>>`, or an enum of your own
    let _ = P::open::<PRefCell<PVec<Option<Entry>, P>, P>>("store", 0);
}
