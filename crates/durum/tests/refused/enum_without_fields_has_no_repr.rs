use durum::typed::*;
durum::pool!(P);

#[derive(PSafe)]
//~ the layout of `Color` is not fixed: add #[repr(u8)]:
enum Color {
    _Red,
    _Green,
}

fn main() {}
