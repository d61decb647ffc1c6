use durum::typed::*;
durum::pool!(P);

fn main() {
    P::transaction(|j| {
        let object = Pbox::<u64, P>::new(1, j);
        std::thread::scope(|scope| {
            //~ Pbox<u64, P>` stays on its thread, in its transaction
            //~ send what `demote()` gives (`VWeak`)
            scope.spawn(|| drop(object));
        });
    })
    .unwrap();
}
