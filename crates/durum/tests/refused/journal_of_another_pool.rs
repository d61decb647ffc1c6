use durum::typed::*;
durum::pool!(P);
durum::pool!(Q);

fn change(cell: &PCell<u64, P>, j: &Journal<Q>) {
    //~ expected `&Journal<P>`, found `&Journal<Q>`
    cell.set(1, j);
}

fn main() {
    let _ = change;
}
