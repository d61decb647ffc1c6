use durum::typed::*;
durum::pool!(P);

fn main() {
    //~ Pbox<{integer}, P>` cannot be sent between threads safely
    let _: durum::Result<()> = P::transaction(|j| std::panic::panic_any(Pbox::new(1, j)));
}
