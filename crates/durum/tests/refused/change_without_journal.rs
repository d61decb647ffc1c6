use durum::typed::*;
durum::pool!(P);

fn change(root: &RootGuard<PCell<u64, P>, P>) {
    //~ this method takes 2 arguments but 1 argument was supplied
    root.set(1);
}

fn main() {
    let _ = change;
}
