use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PRefCell<u64, P>>("store", 0).unwrap();
    //~ no method named `later` found for struct `PRef<'_, u64>`
    *root.borrow().later().change() = 1;
}
