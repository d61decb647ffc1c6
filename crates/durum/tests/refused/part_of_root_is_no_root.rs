use durum::typed::*;
durum::pool!(P);

#[derive(Default, PSafe)]
#[repr(C)]
struct Settings {
    port: u32,
}

#[derive(PSafe, Root)]
#[repr(C)]
struct Server {
    settings: Settings,
}

fn main() {
    //~ `Settings` cannot be the root of pool `P`, nor a part of it
    //~ derive `PSafe` and `Root`; or implement `Root` to say what a new pool begins with
    let _ = P::open::<Server>("store", 0);
}
