//! A check in the background: it takes as long as the store is large, and nobody else waits for it. Who asks is told
//! how far it has come and which leaks it has found, and it ends when nobody has asked for a while.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_service::{CheckOptions, Leak, Progress, Stage};
use serde_json::{Value as Json, json};

use super::leaks::Leaks;
use super::tree::hex;
use crate::failure::{DAMAGED, Failure, REFUSED};

/// How long an answer waits for the end: a small store is checked within that.
const PATIENCE: Duration = Duration::from_millis(200);
/// After so long nobody wants to know any more.
const UNASKED_MAX: Duration = Duration::from_secs(5);

/// The checks that somebody may ask for.
#[derive(Debug)]
pub(super) struct Checking {
    unasked_max: Duration,
    runs: Mutex<Runs>,
}

#[derive(Debug, Default)]
struct Runs {
    begun: u64,
    /// The one that is under way, or was the last.
    last: Option<Arc<Run>>,
    /// The last one before it that came to an end: who has followed it asks for what came out, whoever has begun the
    /// next one meanwhile.
    before: Option<Arc<Run>>,
}

#[derive(Debug)]
struct Run {
    number: u64,
    unasked_max: Duration,
    stop: Arc<AtomicBool>,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug)]
struct State {
    asked: Instant,
    stage: &'static str,
    done: u64,
    total: u64,
    leaks: Leaks,
    /// What came out, or why nothing did, with the exit code of that.
    outcome: Option<Result<Arc<Json>, (u8, String)>>,
}

impl Default for Checking {
    fn default() -> Self {
        Checking {
            unasked_max: UNASKED_MAX,
            runs: Mutex::default(),
        }
    }
}

impl Checking {
    /// What a check has found so far: the one that was asked for by its number, else the one that is under way, or a
    /// new one, which `check` makes. Leaks are told of one pool.
    pub(super) fn answer(
        &self,
        number: Option<u64>,
        pool: Option<&str>,
        check: impl FnOnce(&CheckOptions) -> Result<Json, Failure> + Send + 'static,
    ) -> Result<Json, Failure> {
        let run = match number {
            Some(number) => self.known(number)?,
            None => self.current(check)?,
        };
        let mut state = run.lock();
        state.asked = Instant::now();
        let waited = run
            .ended
            .wait_timeout_while(state, PATIENCE, |state| state.outcome.is_none());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (stage, done, total) = (state.stage, state.done, state.total);
        let leaks = pool.map(|pool| state.leaks.of_pool(pool));
        let outcome = state.outcome.clone();
        // The check waits for this lock at each leak.
        drop(state);
        let mut told = match &outcome {
            Some(Ok(report)) => Json::clone(report),
            Some(Err((DAMAGED, text))) => return Err(Failure::Damaged(text.clone())),
            Some(Err((REFUSED, text))) => return Err(Failure::Refused(text.clone())),
            Some(Err((_, text))) => return Err(Failure::Unreadable(text.clone())),
            None => json!({}),
        };
        told["run"] = json!(hex(run.number));
        told["ended"] = json!(outcome.is_some());
        told["stage"] = json!(stage);
        told["done"] = json!(done);
        told["total"] = json!(total);
        told["found"] = leaks.unwrap_or_default().to_json();
        Ok(told)
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, number: u64) -> Result<Arc<Run>, Failure> {
        let runs = self.runs();
        let mut known = [&runs.last, &runs.before].into_iter().flatten();
        let known = known.find(|run| run.number == number);
        known.cloned().ok_or_else(|| {
            Failure::Refused(
                "this check has ended, as nobody asked for it, or gave way to a later one".into(),
            )
        })
    }

    /// Joins the run that is under way, or begins one.
    fn current(
        &self,
        check: impl FnOnce(&CheckOptions) -> Result<Json, Failure> + Send + 'static,
    ) -> Result<Arc<Run>, Failure> {
        let mut runs = self.runs();
        if let Some(run) = &runs.last
            && run.is_under_way()
        {
            return Ok(run.clone());
        }
        let run = Arc::new(Run {
            number: runs.begun,
            unasked_max: self.unasked_max,
            stop: Arc::default(),
            state: Mutex::new(State {
                asked: Instant::now(),
                stage: "store",
                done: 0,
                total: 0,
                leaks: Leaks::default(),
                outcome: None,
            }),
            ended: Condvar::new(),
        });
        let mine = run.clone();
        let go = move || {
            // An outcome there is in any case: else this check would be under way for ever, and no other one begin.
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| check(&mine.options())));
            let outcome = outcome.unwrap_or_else(|_| {
                Err(Failure::Unreadable(
                    "the check has failed, which is a fault of durum: what it was is where `durum explore` was started"
                        .into(),
                ))
            });
            let outcome = outcome
                .map(Arc::new)
                .map_err(|failure| (failure.exit_code(), failure.to_string()));
            mine.lock().outcome = Some(outcome);
            mine.ended.notify_all();
        };
        let thread = thread::Builder::new().name("explore-check".to_owned());
        let begun = thread.spawn(go);
        begun.map_err(|error| Failure::system("beginning a check", error))?;
        runs.begun += 1;
        let before = runs.last.replace(run.clone());
        if let Some(before) = before.filter(|run| run.lock().outcome.is_some()) {
            runs.before = Some(before);
        }
        Ok(run)
    }
}

impl Run {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it will have an outcome that somebody wants.
    fn is_under_way(&self) -> bool {
        self.lock().outcome.is_none() && !self.stop.load(Ordering::Relaxed)
    }

    /// What a check is to tell this, and when it is to end.
    fn options(self: &Arc<Self>) -> CheckOptions {
        let (told, found) = (self.clone(), self.clone());
        CheckOptions {
            progress: Some(Arc::new(move |progress: Progress| told.go_on(progress))),
            leaks: Some(Arc::new(move |leak: &Leak| found.lock().leaks.add(leak))),
            stop: Some(self.stop.clone()),
            ..CheckOptions::default()
        }
    }

    fn go_on(&self, progress: Progress) {
        let mut state = self.lock();
        state.stage = match progress.stage {
            Stage::Check => "puddles",
            Stage::Pointers => "pointers",
            Stage::Leaks => "leaks",
            _ => "store",
        };
        (state.done, state.total) = (progress.done, progress.total);
        if state.asked.elapsed() > self.unasked_max {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A check that goes on until it is stopped; it tells then what it was.
    fn endless(
        ended: mpsc::Sender<&'static str>,
        name: &'static str,
    ) -> impl FnOnce(&CheckOptions) -> Result<Json, Failure> + Send + 'static {
        move |how| {
            let stop = how.stop.as_ref().unwrap();
            let mut done = 0;
            while !stop.load(Ordering::Relaxed) {
                done += 1;
                Progress::tell(&how.progress, Stage::Pointers, done, u64::MAX);
                thread::sleep(Duration::from_millis(1));
            }
            ended.send(name).unwrap();
            Err(Failure::Refused("stopped".into()))
        }
    }

    #[test]
    fn who_asks_joins_what_is_under_way_and_nobody_ends_it() {
        let checking = Checking {
            unasked_max: Duration::from_secs(1),
            ..Checking::default()
        };
        let (sender, ended) = mpsc::channel();
        let first = checking
            .answer(None, None, endless(sender.clone(), "first"))
            .unwrap();
        assert_eq!(
            (&first["ended"], &first["stage"]),
            (&json!(false), &json!("pointers"))
        );
        // Another one who wants a check has the same, and asking keeps it alive.
        for _ in 0..6 {
            let joined = checking
                .answer(None, None, endless(sender.clone(), "second"))
                .unwrap();
            assert_eq!(joined["run"], first["run"]);
            assert!(joined["done"].as_u64() > first["done"].as_u64());
            thread::sleep(Duration::from_millis(100));
        }
        assert!(ended.try_recv().is_err(), "somebody asks for it");
        assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok("first"));
        // A later one has another number, and nobody is told of it who asks for the one before.
        let later = checking
            .answer(None, None, |_: &CheckOptions| Ok(json!({ "sound": true })))
            .unwrap();
        assert_eq!(
            (&later["ended"], &later["sound"]),
            (&json!(true), &json!(true))
        );
        assert_ne!(later["run"], first["run"]);
        let gone = checking.answer(Some(0), None, |_: &CheckOptions| Ok(json!({})));
        assert!(gone.is_err());
        let again = checking.answer(Some(1), None, |_: &CheckOptions| Ok(json!({})));
        assert_eq!(again.unwrap()["sound"], true);
    }

    /// What comes out of a check, which takes as long as it takes.
    fn outcome(
        checking: &Checking,
        check: impl FnOnce(&CheckOptions) -> Result<Json, Failure> + Send + 'static,
    ) -> Result<Json, Failure> {
        let mut told = checking.answer(None, None, check)?;
        for _ in 0..100 {
            if told["ended"] == true {
                return Ok(told);
            }
            let run = told["run"].as_str().unwrap().strip_prefix("0x").unwrap();
            let run = u64::from_str_radix(run, 16).unwrap();
            told = checking.answer(Some(run), None, |_: &CheckOptions| Ok(json!({})))?;
        }
        panic!("it is under way for ever: {told}")
    }

    #[test]
    fn a_check_that_panics_has_ended_and_another_one_begins() {
        let checking = Checking::default();
        let failed = outcome(&checking, |_: &CheckOptions| panic!("a test's own"));
        let failed = failed.unwrap_err();
        assert!(failed.to_string().contains("a fault of durum"), "{failed}");
        let next = outcome(&checking, |_: &CheckOptions| Ok(json!({ "sound": true })));
        assert_eq!(next.unwrap()["sound"], true);
    }

    #[test]
    fn who_has_followed_a_check_is_told_of_its_end_whoever_has_begun_another_one() {
        let checking = Checking::default();
        let told = |number: u64| move |_: &CheckOptions| Ok(json!({ "told": number }));
        for number in 0..3 {
            let run = outcome(&checking, told(number)).unwrap();
            assert_eq!(run["told"], number);
        }
        for number in 1..3 {
            let again = checking.answer(Some(number), None, told(9)).unwrap();
            assert_eq!(again["told"], number);
        }
        assert!(checking.answer(Some(0), None, told(9)).is_err());
    }
}
