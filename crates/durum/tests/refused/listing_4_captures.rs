// Listing 4: another transaction's journal cannot be captured.
use durum::typed::*;
durum::pool!(P1);
durum::pool!(P2);

fn main() {
    P1::transaction(|j1| {
        let p1 = PCell::new(Pbox::new(1, j1), j1);
        //~ a transaction cannot capture
        //~ a journal or guard of another transaction; return a value from the transaction instead
        P2::transaction(|_j2| p1.set(Pbox::new(1, j1), j1)).unwrap();
    })
    .unwrap();
}
