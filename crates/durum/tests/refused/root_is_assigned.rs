use durum::typed::*;
durum::pool!(P);

fn change(root: &mut RootGuard<u64, P>) {
    //~ trait `DerefMut` is required to modify through a dereference
    **root = 1;
}

fn main() {
    let _ = change;
}
