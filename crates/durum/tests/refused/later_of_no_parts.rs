use durum::typed::*;
durum::pool!(P);

#[derive(PSafe, Parts)]
//~ there are no parts to take
#[repr(C)]
struct Nothing;

fn main() {}
