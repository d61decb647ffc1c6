use durum::typed::*;
durum::pool!(P);

#[derive(PSafe)]
#[repr(C)]
struct Slot<T> {
    //~ an `Option` in a pool cannot hold `T`
    //~ says `T: InOption`
    value: Option<T>,
}

fn main() {
    let _ = P::open::<PCell<u64, P>>("store", 0);
}
