use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<u64>("store", 0).unwrap();
    let value: &u64 = &root;
    //~ cannot move out of `root` because it is borrowed
    drop(root);
    println!("{value}");
}
