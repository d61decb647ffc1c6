use durum::typed::*;
durum::pool!(P);
durum::pool!(Q);

#[derive(PSafe)]
#[repr(C)]
//~ a type has pointers into two pools
//~ struct Both {
struct Both {
    _one: Option<Pbox<u64, P>>,
    _other: Option<Pbox<u64, Q>>,
}

fn main() {}
