use durum::typed::*;
durum::pool!(P);

fn main() {
    let mut values = vec![1, 2].into_iter();
    //~ a transaction cannot capture
    P::transaction(|_| values.next()).unwrap();
}
