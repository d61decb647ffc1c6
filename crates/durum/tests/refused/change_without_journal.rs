use durum::typed::*;
durum::pool!(P);

fn change(root: &RootGuard<PCell<u64, P>, P>) {
    //~ argument #2 of type `&Journal<P>` is missing
    root.set(1);
}

fn main() {
    let _ = change;
}
