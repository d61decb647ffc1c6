use durum::typed::*;
durum::pool!(P);

fn main() {
    let mut number = 0;
    let later = Later::from(&mut number);
    //~ a transaction cannot capture `{closure
    //~ return a value from the transaction instead
    P::transaction(move |_| *later.change() = 1).unwrap();
}
