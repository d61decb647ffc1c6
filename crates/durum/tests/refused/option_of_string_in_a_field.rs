use durum::typed::*;
durum::pool!(P);

#[derive(PSafe, Root)]
#[repr(C)]
struct Person {
    //~ an `Option` in a pool cannot hold
    //~ name: PRefCell<Option<PString<P>>, P>,
    name: PRefCell<Option<PString<P>>, P>,
}

fn main() {
    let _ = P::open::<Person>("store", 0);
}
