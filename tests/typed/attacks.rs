//! Safe code that carries handles out of a transaction where no type can see it. The process ends before anything
//! dangles, and the pool is as before.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::{Mutex, OnceLock};

use durum::Engine;
use durum::typed::*;

use crate::{Place, options};

durum::pool!(P);
type Root = PRefCell<Object, P>;
type Object = Option<Pbox<PRefCell<u64, P>, P>>;
type Handle = Pbox<u64, P>;

/// The store and the engine of an attack, in the process that it is to end.
fn victim() -> Option<(PathBuf, Engine)> {
    let path = std::env::var_os("DURUM_ATTACKED_STORE")?;
    let engine = std::env::var("DURUM_ATTACKED_ENGINE").unwrap();
    Some((path.into(), Engine::from_name(&engine).unwrap()))
}

fn open(path: &Path, engine: Engine) -> RootGuard<Root, P> {
    P::open::<Root>(path, options(engine)).unwrap()
}

/// Runs this very test in a process of its own on each engine, which has to abort saying `reason`.
fn ends_the_process(test: &str, reason: &str) {
    for engine in ["shadow", "hybrid", "twin"] {
        let place = Place::new();
        let kind = Engine::from_name(engine).unwrap();
        let root = open(&place.path, kind);
        P::transaction(|j| *root.borrow_mut(j) = Some(Pbox::new(PRefCell::new(1, j), j))).unwrap();
        root.close().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env("DURUM_ATTACKED_STORE", &place.path)
            .env("DURUM_ATTACKED_ENGINE", engine)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(6), "{engine}: {told}");
        assert!(told.contains(reason), "{engine}: {told}");
        let root = open(&place.path, kind);
        assert_eq!(*root.borrow().as_ref().unwrap().borrow(), 1, "{engine}");
        drop(root);
    }
}

/// One opening of `P` at a time in this process.
static TURN: Mutex<()> = Mutex::new(());

macro_rules! attacks {
    ($($(#[$attribute:meta])* fn $name:ident($root:ident) $body:block because $reason:literal)*) => { $(
        $(#[$attribute])*
        #[test]
        fn $name() {
            if let Some((path, engine)) = victim() {
                let $root = open(&path, engine);
                $body
                #[allow(unreachable_code)]
                {
                    drop($root);
                    std::process::exit(0);
                }
            }
            let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            ends_the_process(concat!("attacks::", stringify!($name)), $reason);
        }
    )* };
}

thread_local! {
    static POCKET: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    static TYPED_POCKET: Cell<Option<Handle>> = const { Cell::new(None) };
}

struct Smuggler<'a>(&'a RefCell<Option<Handle>>);
// Safe: these are lints.
impl UnwindSafe for Smuggler<'_> {}
impl RefUnwindSafe for Smuggler<'_> {}

attacks! {
    fn a_captured_mutex(root) {
        let pocket: Mutex<Option<Handle>> = Mutex::new(None);
        let _ = &root;
        P::transaction(|j| *pocket.lock().unwrap() = Some(Pbox::new(1, j))).unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_captured_once_lock(root) {
        let pocket: OnceLock<Handle> = OnceLock::new();
        let _ = &root;
        P::transaction(|j| assert!(pocket.set(Pbox::new(1, j)).is_ok())).unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_captured_sender(root) {
        let (sender, _receiver) = std::sync::mpsc::channel::<Handle>();
        let _ = &root;
        P::transaction(|j| sender.send(Pbox::new(1, j)).unwrap()).unwrap();
    } because "carried out of a transaction or forgotten"

    fn an_assertion(root) {
        let mut pocket: Option<Handle> = None;
        let captured = AssertUnwindSafe(&mut pocket);
        let _ = &root;
        P::transaction(move |j| {
            let captured = captured;
            *captured.0 = Some(Pbox::new(1, j));
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"

    fn an_impl_of_unwind_safe(root) {
        let pocket = RefCell::new(None);
        let smuggler = Smuggler(&pocket);
        let _ = &root;
        P::transaction(|j| {
            let smuggler = &smuggler;
            *smuggler.0.borrow_mut() = Some(Pbox::new(1, j));
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_thread_local(root) {
        let _ = &root;
        P::transaction(|j| TYPED_POCKET.set(Some(Pbox::new(1, j)))).unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_leaked_box(root) {
        let _ = &root;
        P::transaction(|j| {
            Box::leak(Box::new(Handle::new(1, j)));
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_cycle_of_volatile_references(root) {
        struct Knot(#[allow(dead_code)] Handle, RefCell<Option<Rc<Knot>>>);
        let _ = &root;
        P::transaction(|j| {
            let knot = Rc::new(Knot(Pbox::new(1, j), RefCell::new(None)));
            *knot.1.borrow_mut() = Some(knot.clone());
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_forgotten_handle(root) {
        let _ = &root;
        P::transaction(|j| std::mem::forget(Handle::new(1, j))).unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_forgotten_counted_handle(root) {
        let _ = &root;
        P::transaction(|j| std::mem::forget(Parc::<u64, P>::new(1, j))).unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_forgotten_vector(root) {
        let _ = &root;
        P::transaction(|_| std::mem::forget(PVec::<u64, P>::from_iter([1, 2, 3]))).unwrap();
    } because "carried out of a transaction or forgotten"

    fn what_was_there_before_then_a_panic(root) {
        let _ = std::panic::catch_unwind(|| {
            P::transaction(|j| {
                let old = root.borrow_mut(j).take();
                POCKET.with(|pocket| *pocket.borrow_mut() = Some(Box::new(old)));
                panic!("on purpose");
            })
        });
    } because "carried out of a transaction or forgotten"

    fn what_a_forgotten_guard_was_used_to_take(root) {
        P::transaction(|j| {
            let mut guard = root.borrow_mut(j);
            let old = guard.take();
            std::mem::forget(guard);
            POCKET.with(|pocket| *pocket.borrow_mut() = Some(Box::new(old)));
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"

    fn one_too_many_and_one_too_few(root) {
        // A handle that was forgotten in an earlier transaction cannot make up for one here: that one ended the
        // process.
        let _ = &root;
        P::transaction(|j| {
            let kept = Handle::new(1, j);
            TYPED_POCKET.set(Some(kept));
            drop(Handle::new(2, j));
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"

    fn what_a_moved_enum_held_where_a_number_was(root) {
        #[derive(PSafe)]
        #[repr(C, u8)]
        enum Either {
            Handle(PCell<Option<Handle>, P>),
            Number(PCell<u64, P>),
        }
        let _ = &root;
        P::transaction(|j| {
            let mut both = PVec::<Either, P>::new();
            both.push(Either::Number(PCell::new(0, j)), j);
            both.push(Either::Handle(PCell::new(Some(Pbox::new(7, j)), j)), j);
            if let Either::Number(number) = &both[0] {
                number.set(1, j);
            }
            both.swap(0, 1);
            if let Either::Handle(handle) = &both[0] {
                TYPED_POCKET.set(handle.replace(None, j));
            }
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_reader_of_what_is_rolled_back(root) {
        let pocket: Mutex<Option<PRef<'_, Object>>> = Mutex::new(None);
        let captured = AssertUnwindSafe(&pocket);
        let root = &*root;
        let _: durum::Result<()> = P::try_transaction(|j| {
            let captured = &captured;
            *root.borrow_mut(j) = None;
            *captured.0.lock().unwrap() = Some(root.borrow());
            Err(durum::Error::Aborted)
        });
    } because "rolled back while what it changed is borrowed"

    fn a_reader_of_what_was_changed_later_and_is_rolled_back(root) {
        let pocket: Mutex<Option<PRef<'_, Object>>> = Mutex::new(None);
        let captured = AssertUnwindSafe(&pocket);
        let root = &*root;
        let _: durum::Result<()> = P::try_transaction(|j| {
            let captured = &captured;
            let mut guard = root.borrow_mut(j);
            *guard.later().some().ok().unwrap().object().change() = PRefCell::new(2, j);
            drop(guard);
            *captured.0.lock().unwrap() = Some(root.borrow());
            Err(durum::Error::Aborted)
        });
    } because "rolled back while what it changed is borrowed"

    fn a_handle_that_was_taken_out_later(root) {
        let pocket: Mutex<Object> = Mutex::new(None);
        P::transaction(|j| *pocket.lock().unwrap() = root.borrow_mut(j).later().change().take()).unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_handle_that_is_overwritten_unseen(root) {
        P::transaction(|j| {
            let mut guard = root.borrow_mut(j);
            std::mem::forget(guard.later().change().replace(Pbox::new(PRefCell::new(2, j), j)));
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"

    fn a_leaked_pointer_that_is_changed_later(root) {
        struct Kept(#[expect(dead_code, reason = "it is not come to")] Later<'static, PRefCell<u64, P>>);
        thread_local! {
            static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
        }
        let _ = &root;
        P::transaction(|j| {
            let leaked: &'static mut Object = Box::leak(Box::new(Some(Pbox::new(PRefCell::new(2, j), j))));
            let later = Later::from(leaked).some().ok().unwrap().object();
            KEPT.with(|kept| *kept.borrow_mut() = Some(Kept(later)));
        })
        .unwrap();
    } because "carried out of a transaction or forgotten"
}
