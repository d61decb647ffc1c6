use durum::typed::*;
durum::pool!(P);

fn main() {
    let root = P::open::<PMutex<u64, P>>("store", Flags::READ_ONLY).unwrap();
    let reading = root.reading().unwrap();
    //~ cannot move out of `root` because it is borrowed
    root.close().unwrap();
    println!("{:?}", reading);
}
