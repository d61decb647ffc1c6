//! Threads that use different objects of one pool wait for nobody. Alone in its process, because what is counted is counted for the whole of it.
#![forbid(unsafe_code)]

use durum::Engine;
use durum::typed::*;

#[derive(PSafe, PClone)]
#[repr(C)]
struct Item<P: PoolType> {
    value: u64,
    next: Option<Parc<Item<P>, P>>,
}

/// What a thread has for itself.
#[derive(PSafe, Root)]
#[repr(C)]
struct Share<P: PoolType> {
    chain: PMutex<Option<Parc<Item<P>, P>>, P>,
    values: PMutex<PVec<Pbox<u64, P>, P>, P>,
    text: PMutex<PString<P>, P>,
}

const THREADS: usize = 4;

fn run<P: PoolType>(engine: Engine) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let pool = durum::PoolOptions::new().engine(engine);
    let options = OpenOptions::new().create(true).pool(pool);
    let shares = P::open::<[Share<P>; THREADS]>(dir.path().join("store"), options).unwrap();
    let before = contended();
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let shares = &shares;
            scope.spawn(move || {
                for value in 0..500 {
                    P::transaction(|j| {
                        let share = &shares[number];
                        let mut chain = share.chain.lock(j);
                        let next = chain.take();
                        *chain = Some(Parc::new(Item { value, next }, j));
                        let copy = chain.as_ref().map(|item| item.pclone(j));
                        if value % 5 == 4 {
                            *chain = copy.and_then(|item| item.next.pclone(j));
                        }
                        share.values.lock(j).push(Pbox::new(value, j), j);
                        share.text.lock(j).push('x', j);
                    })
                    .unwrap();
                }
            });
        }
    });
    println!(
        "{engine:?}: {} contended acquisitions",
        contended() - before
    );
    assert_eq!(contended(), before);
    P::transaction(|j| {
        for share in &*shares {
            assert_eq!(share.values.lock(j).len(), 500);
            assert_eq!(share.text.lock(j).len(), 500);
        }
    })
    .unwrap();
    // What is contended does count.
    let held = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let (shares, held) = (&shares, &held);
        scope.spawn(move || {
            P::transaction(|j| {
                let _lock = shares[0].text.lock(j);
                held.wait();
                std::thread::sleep(std::time::Duration::from_millis(50));
            })
            .unwrap();
        });
        held.wait();
        P::transaction(|j| assert_eq!(shares[0].text.lock(j).len(), 500)).unwrap();
    });
    assert_eq!(contended(), before + 1);
}

#[test]
fn threads_apart_never_wait() {
    durum::pool!(OnShadow);
    durum::pool!(OnHybrid);
    run::<OnShadow>(Engine::Shadow);
    run::<OnHybrid>(Engine::Hybrid);
}
