//! Going through a trace, and through the traces of crashed recoveries.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::draw::{Amounts, Draw, Image, choose, draws, sample};
use super::image::ImageDir;
use super::media::{Media, mix};
use super::{CrashPoint, Failure, Plan, Report};
use crate::record::Recorder;
use crate::recording::{Event, EventKind, RecorderOptions, Trace};

/// Recoveries of nested images are recorded this many times more rarely than those of outer ones.
const DEEPER_IS_RARER: u64 = 8;

pub(super) struct Run<'p, R, C> {
    plan: &'p Plan,
    recover: R,
    check: C,
    pub(super) report: Report,
    /// By depth.
    dirs: Vec<ImageDir>,
    /// [`Plan::only`], parsed.
    only: Option<Vec<Step>>,
    /// That image was made.
    found: bool,
}

/// An image of a crash point.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Step {
    point: usize,
    draw: Draw,
}

/// How we came to an image: a step for each depth, and the event before each crash.
#[derive(Default)]
struct Way<'t> {
    steps: Vec<Step>,
    events: Vec<&'t Event>,
}

impl Way<'_> {
    fn name(&self) -> String {
        let steps = self.steps.iter();
        let steps: Vec<_> = steps
            .map(|step| format!("{}:{}", step.point, step.draw))
            .collect();
        steps.join("/")
    }

    fn failure(&self, plan: &Plan, message: String) -> Failure {
        let events = self.events.iter();
        Failure {
            seed: plan.seed,
            replay: self.name(),
            events: events.map(|event| format!("{event:?}")).collect(),
            message,
            image: None,
        }
    }

    fn seed(&self, seed: u64) -> u64 {
        self.name().bytes().map(u64::from).fold(seed, mix)
    }
}

impl<'p, R, C> Run<'p, R, C>
where
    R: FnMut(&Path) -> Result<(), String>,
    C: FnMut(&Path, &CrashPoint<'_>) -> Result<(), String>,
{
    pub(super) fn new(plan: &'p Plan, recover: R, check: C) -> Result<Self, Failure> {
        let only = plan.only.as_deref().map(parse).transpose();
        let only = only.map_err(|message| plain_failure(plan, message))?;
        Ok(Run {
            plan,
            recover,
            check,
            report: Report::default(),
            dirs: Vec::new(),
            only,
            found: false,
        })
    }

    pub(super) fn explore(&mut self, trace: &Trace) -> Result<(), Failure> {
        if trace.events.is_empty() {
            let message = "the trace is empty: nothing below the recorded directory went through durum-persist";
            return Err(plain_failure(self.plan, message.into()));
        }
        self.level(trace, None, Way::default())?;
        if self.only.is_some() && !self.found {
            let message =
                "there is no such image: it needs the trace and the plan that it came from";
            return Err(plain_failure(self.plan, message.into()));
        }
        Ok(())
    }

    /// Explores one trace: the outer one, or with `outer` that of a recovery from a crash at this point.
    fn level(
        &mut self,
        trace: &Trace,
        outer: Option<&CrashPoint<'_>>,
        way: Way<'_>,
    ) -> Result<(), Failure> {
        let fail = |message: String| way.failure(self.plan, message);
        if let Some(change) = trace.bypassed.first() {
            return Err(fail(format!("a write went past durum-persist: {change}")));
        }
        let mut media = Media::new(trace, self.plan.rules).map_err(fail)?;
        let selected = self.select_points(trace, outer.is_some(), way.seed(self.plan.seed));
        let mut seen = HashSet::new();
        let (mut api_calls, mut notes) = (0, 0);
        let mut changed = true;
        for (index, event) in trace.events.iter().enumerate() {
            changed |= media.apply(event).map_err(fail)?;
            api_calls += usize::from(matches!(event.kind, EventKind::Api(_)));
            notes += usize::from(matches!(event.kind, EventKind::Note { .. }));
            // After a mark, the same images must satisfy a check that expects more.
            changed |=
                outer.is_none() && matches!(event.kind, EventKind::Api(_) | EventKind::Note { .. });
            if !selected[index] || !changed || (outer.is_none() && api_calls < self.plan.from_api) {
                continue;
            }
            changed = false;
            let own = CrashPoint {
                index,
                event,
                api_calls,
                trace,
                notes,
            };
            let marks = outer.map_or(api_calls + notes, |_| 0);
            self.report.points += u64::from(outer.is_none());
            let seed = mix(way.seed(self.plan.seed), index as u64);
            for draw in self.draws(&media, way.steps.len(), seed) {
                let image = choose(&media, draw, seed);
                if self.only.is_none() && !seen.insert((image.hash, marks)) {
                    self.report.duplicates += u64::from(outer.is_none());
                    continue;
                }
                let mut steps = way.steps.clone();
                steps.push(Step { point: index, draw });
                let mut events = way.events.clone();
                events.push(event);
                let way = Way { steps, events };
                self.image(&media, &image, outer.unwrap_or(&own), way)?;
            }
        }
        Ok(())
    }

    /// Which events of the trace are crash points.
    fn select_points(&self, trace: &Trace, nested: bool, seed: u64) -> Vec<bool> {
        let count = trace.events.len();
        let points_max = match nested {
            true => self.plan.nested_points_max,
            false => self.plan.points_max,
        };
        let mut selected = vec![points_max.is_none() || self.only.is_some(); count];
        if let Some(points_max) = points_max {
            // What a fence has made durable, and what its absence would not have, shows at fences: up to half of the
            // points are there.
            let is_fence = |index: &usize| {
                let kind = &trace.events[*index].kind;
                matches!(kind, EventKind::Fence { .. } | EventKind::Synced { .. })
            };
            let (fences, others): (Vec<usize>, Vec<usize>) = (0..count).partition(is_fence);
            let at_fences = sample(fences.len(), points_max / 2, seed);
            let at_others = sample(others.len(), points_max - at_fences.len(), seed);
            let chosen = at_fences.into_iter().map(|at| fences[at]);
            for index in chosen.chain(at_others.into_iter().map(|at| others[at])) {
                selected[index] = true;
            }
        }
        // At the end everything is acknowledged: always worth a look.
        if let Some(last) = selected.last_mut() {
            *last = true;
        }
        selected
    }

    fn draws(&self, media: &Media<'_>, depth: usize, seed: u64) -> Vec<Draw> {
        let plan = self.plan;
        let amounts = if depth == 0 {
            Amounts {
                random_images: plan.random_images,
                single_units_max: plan.single_units_max,
                exhaustive_max: plan.exhaustive_max,
            }
        } else {
            Amounts {
                random_images: plan.random_images.div_ceil(4),
                single_units_max: plan.single_units_max.div_ceil(4),
                exhaustive_max: plan.exhaustive_max.div_ceil(2),
            }
        };
        draws(media, amounts, seed)
    }

    /// Makes one image, recovers and checks it; may crash the recovery.
    fn image(
        &mut self,
        media: &Media<'_>,
        image: &Image,
        point: &CrashPoint<'_>,
        way: Way<'_>,
    ) -> Result<(), Failure> {
        let depth = way.steps.len() - 1;
        if let Some(only) = &self.only
            && only.get(..way.steps.len()) != Some(&way.steps)
        {
            return Ok(());
        }
        self.found |= self
            .only
            .as_ref()
            .is_some_and(|only| only.len() == way.steps.len());
        let io_failure = |error: std::io::Error| {
            way.failure(self.plan, format!("cannot make the image: {error}"))
        };
        while self.dirs.len() <= depth {
            let dir = ImageDir::new(self.plan.scratch.as_deref()).map_err(io_failure)?;
            self.dirs.push(dir);
        }
        let dir = &mut self.dirs[depth];
        dir.write(media, image).map_err(io_failure)?;
        let path = dir.path().to_owned();
        let nest = self.nests(&way);
        let recorder = nest.then(|| Recorder::start(&path, RecorderOptions::default()));
        let recovered = guarded("recovery", || (self.recover)(&path));
        let trace = recorder.map(Recorder::stop);
        match depth {
            0 => self.report.images += 1,
            _ => self.report.nested_images += 1,
        }
        let checked = recovered.and_then(|()| guarded("check", || (self.check)(&path, point)));
        if let Err(message) = checked {
            let mut failure = way.failure(self.plan, message);
            if self.plan.keep_failed {
                failure.image = keep(self.plan, media, image);
            }
            return Err(failure);
        }
        if let Some(trace) = trace {
            self.report.recoveries += 1;
            self.level(&trace, Some(point), way)?;
        }
        Ok(())
    }

    /// Whether the recovery of this image shall be crashed.
    fn nests(&self, way: &Way<'_>) -> bool {
        let depth = way.steps.len();
        if let Some(only) = &self.only {
            return only.len() > depth;
        }
        if self.plan.nested_one_in == 0 || depth > self.plan.nested_depth as usize {
            return false;
        }
        let one_in = u64::from(self.plan.nested_one_in)
            .saturating_mul(DEEPER_IS_RARER.pow(depth as u32 - 1));
        way.seed(mix(self.plan.seed, 3)).is_multiple_of(one_in)
    }
}

/// A copy of a failed image, as it was before recovery and check.
fn keep(plan: &Plan, media: &Media<'_>, image: &Image) -> Option<std::path::PathBuf> {
    let mut dir = ImageDir::new(plan.scratch.as_deref()).ok()?;
    dir.write(media, image).ok()?;
    Some(dir.keep())
}

/// Turns a panic into an error, so that the report names the image.
fn guarded(whose: &str, body: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(message)) => Err(format!("{whose}: {message}")),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("");
            Err(format!("{whose} panicked: {text}"))
        }
    }
}

fn plain_failure(plan: &Plan, message: String) -> Failure {
    Way::default().failure(plan, message)
}

fn parse(text: &str) -> Result<Vec<Step>, String> {
    let step = |text: &str| {
        let parts = text.split_once(':');
        let (point, draw) = parts.ok_or_else(|| format!("{text:?} names no image"))?;
        let number = point.parse();
        Ok(Step {
            point: number.map_err(|_| format!("{point:?} is no crash point"))?,
            draw: draw.parse()?,
        })
    };
    text.split('/').map(step).collect()
}
