use durum::typed::*;
durum::pool!(P);

fn change(cell: Later<PRefCell<[u64; 2], P>>) {
    //~ no method named `at` found for struct `durum::typed::Later<'_, durum::typed::PRefCell<[u64; 2], P>>`
    *cell.at(0).change() = 1;
}

fn main() {
    let _ = change;
}
