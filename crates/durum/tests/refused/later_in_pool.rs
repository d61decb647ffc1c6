use durum::typed::*;
durum::pool!(P);

#[derive(PSafe)]
#[repr(C)]
struct Kept {
    //~ Later<'static, u64>` cannot live in a pool
    later: Later<'static, u64>,
}

fn main() {}
