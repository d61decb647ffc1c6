//! Twin pools that are made whole as they are opened.

use durum_format::Uuid;

use super::Embedded;
use super::commit::Away;
use crate::error::Result;
use crate::files::{self, Puddles};
use crate::model::PuddleGrant;
use crate::recovery::{apply, plan_twin};

impl Embedded {
    /// Recovers a Twin pool one of whose files was put back after all others were recovered.
    pub(super) fn make_whole(
        &self,
        away: &Away<'_>,
        pool: Uuid,
        root: &PuddleGrant,
        name: &str,
    ) -> Result<()> {
        let registered = away.look(|open| open.contents.puddles_of(pool))?;
        let path = &self.host.path;
        let refused = |error| files::of_pool(error, path, name);
        let puddles = Puddles::of(path)?;
        let plan = plan_twin(&puddles, &registered, root).map_err(refused)?;
        if plan.twins.is_empty() {
            return Ok(());
        }
        let contents = away.look(|open| open.contents.clone())?;
        let failed = apply(&puddles, &contents, &plan)?;
        failed
            .into_values()
            .next()
            .map_or(Ok(()), |error| Err(refused(error)))
    }
}
