//! Threads that use different objects of one pool wait for nobody. Alone in its process, because what is counted is
//! counted for the whole of it.
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
/// Of each thread.
const TRANSACTIONS: usize = 500;

fn run<P: PoolType>(engine: Engine) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let pool = durum::PoolOptions::new().engine(engine);
    let options = OpenOptions::new().create(true).pool(pool);
    let shares = P::open::<[Share<P>; THREADS]>(dir.path().join("store"), options).unwrap();
    let (before, before_within) = (contended(), contended_within());
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let shares = &shares;
            scope.spawn(move || {
                for value in 0..TRANSACTIONS as u64 {
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
    let within = contended_within() - before_within;
    println!(
        "{engine:?}: {} contended acquisitions, and {within} of locks that all threads of a pool share, in {} transactions",
        contended() - before,
        THREADS * TRANSACTIONS,
    );
    assert_eq!(contended(), before);
    // These are for what one transaction in many needs.
    assert!(within < (THREADS * TRANSACTIONS / 10) as u64, "{within}");
    P::transaction(|j| {
        for share in &*shares {
            assert_eq!(share.values.lock(j).len(), TRANSACTIONS);
            assert_eq!(share.text.lock(j).len(), TRANSACTIONS);
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
        P::transaction(|j| assert_eq!(shares[0].text.lock(j).len(), TRANSACTIONS)).unwrap();
    });
    assert_eq!(contended(), before + 1);
}

#[test]
fn threads_apart_never_wait() {
    durum::pool!(OnShadow);
    durum::pool!(OnHybrid);
    run::<OnShadow>(Engine::Shadow);
    run::<OnHybrid>(Engine::Hybrid);
    threads_on_twin_wait_for_the_turn();
}

/// Where threads do meet in what a pool shares, that is counted: on Twin, in the turn of each transaction.
fn threads_on_twin_wait_for_the_turn() {
    durum::pool!(OnTwin);
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = OpenOptions::from(Flags::CREATE | Flags::TWIN);
    let shares = OnTwin::open::<[PMutex<u64, OnTwin>; 2]>(dir.path().join("store"), options);
    let shares = shares.unwrap();
    let (before, before_within) = (contended(), contended_within());
    let begun = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let (shares, begun) = (&shares, &begun);
        scope.spawn(move || {
            OnTwin::transaction(|j| {
                *shares[0].lock(j) += 1;
                begun.wait();
                std::thread::sleep(std::time::Duration::from_millis(50));
            })
            .unwrap();
        });
        begun.wait();
        OnTwin::transaction(|j| *shares[1].lock(j) += 1).unwrap();
    });
    assert_eq!(contended(), before);
    assert!(contended_within() > before_within);
}
