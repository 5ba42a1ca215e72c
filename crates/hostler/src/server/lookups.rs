//! The data for native routes (`[geo]`, `[postal]`): opened at the start, and opened again after a reload that changes its section. Knows
//! no requests.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hostler_config::{Config, MatchPattern, PathPattern};
use hostler_engine::journal::{Journal, Level};
use hostler_native::Native;
use hostler_native::geo::Geo;
use hostler_native::postal::Postal;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::file_stamp::Read;

/// How often replaced data is checked until no request uses it any more.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub(super) struct LookupServices {
    pub geo: Option<Arc<Geo>>,
    pub postal: Option<Arc<Postal>>,
    geo_read: Read,
    postal_read: Read,
}

impl LookupServices {
    /// Opens the data that the configuration names. Data of an unchanged section stays open.
    pub fn open(newer: &Config, before: Option<(&Config, &Self)>, journal: &Journal) -> Result<Self, String> {
        // Large files take a core about 100 ms each, so the two services are opened side by side.
        let (geo, postal) = thread::scope(|scope| {
            let geo = thread::Builder::new()
                .name("open geo".into())
                .spawn_scoped(scope, || open_geo(newer, before, journal));
            let postal = open_postal(newer, before, journal);
            let geo = match geo {
                Ok(opening) => opening.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(error) => Err(format!("geo.databases: no thread can be started to read them ({error})")),
            };
            (geo, postal)
        });
        let ((geo, geo_read), (postal, postal_read)) = (geo?, postal?);
        Ok(Self { geo, postal, geo_read, postal_read })
    }

    /// Frees what `kept` does not have, when no request uses it any more.
    pub fn free(&self, kept: &Self) {
        free(self.geo.as_ref(), kept.geo.as_ref());
        free(self.postal.as_ref(), kept.postal.as_ref());
    }

    /// The native answers of a route.
    pub fn native(&self, pattern: &MatchPattern, geo: bool, postal: bool) -> Native {
        let prefix = match &pattern.path {
            PathPattern::Prefix(prefix) => prefix.as_str(),
            PathPattern::Exact(_) => "",
        };
        Native::new(self.geo.clone().filter(|_| geo), self.postal.clone().filter(|_| postal), prefix.into())
    }
}

/// A service and the state of its files. None: it is not configured.
type LookupOpening<T> = Result<(Option<Arc<T>>, Read), String>;

fn open_geo(
    newer: &Config,
    before: Option<(&Config, &LookupServices)>,
    journal: &Journal,
) -> LookupOpening<Geo> {
    let databases = |config: &Config| config.geo.as_ref().map(|geo| geo.databases.clone());
    let read = match before {
        Some((older, data)) if databases(older) == databases(newer) => data.geo_read.clone(),
        _ => Read::begin(&databases(newer).unwrap_or_default()),
    };
    let geo = match (&newer.geo, before) {
        (Some(written), Some((older, data))) if older.geo.as_ref() == Some(written) => data.geo.clone(),
        (Some(written), before) => {
            let before = before.and_then(|(_, data)| data.geo.as_deref());
            let opened = Geo::open(written, &newer.server.temp_dir, before)
                .map_err(|error| format!("geo.databases: {error}"))?;
            warn(journal, &opened);
            Some(Arc::new(opened))
        }
        (None, _) => None,
    };
    Ok((geo, read))
}

fn open_postal(
    newer: &Config,
    before: Option<(&Config, &LookupServices)>,
    journal: &Journal,
) -> LookupOpening<Postal> {
    match (&newer.postal, before) {
        (Some(written), Some((older, data))) if older.postal.as_ref() == Some(written) => {
            Ok((data.postal.clone(), data.postal_read.clone()))
        }
        (Some(written), before) => {
            let read = Read::begin(&written.data);
            let before = before.and_then(|(_, data)| data.postal.as_deref());
            let opened = Postal::open(written, &newer.server.temp_dir, before)
                .map_err(|error| format!("postal.data: {error}"))?;
            warn(journal, &opened);
            Ok((Some(Arc::new(opened)), read))
        }
        (None, _) => Ok((None, Read::default())),
    }
}

/// On a blocking thread: to unmap a large file takes milliseconds. The last request that uses it would do so on its data-plane thread.
fn free<T: Send + Sync + 'static>(replaced: Option<&Arc<T>>, kept: Option<&Arc<T>>) {
    let Some(replaced) = replaced.cloned() else { return };
    if kept.is_some_and(|kept| Arc::ptr_eq(kept, &replaced)) {
        return;
    }
    tokio::spawn(async move {
        while Arc::strong_count(&replaced) > 1 {
            sleep(POLL_INTERVAL).await;
        }
        // An error means that the runtime ends.
        let _ = spawn_blocking(move || drop(replaced)).await;
    });
}

/// Says which of its files could not be copied.
pub(super) fn warn<T: Renewable>(journal: &Journal, service: &T) {
    let say = |remark: &String| journal.event(Level::Warn, &format!("{}: {remark}", T::NAME));
    service.remarks().iter().for_each(say);
}

/// The names of a route's native answers.
pub(super) fn names(native: &Native) -> String {
    let names = [native.geo.as_ref().map(|_| "geo"), native.postal.as_ref().map(|_| "postal")];
    names.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Why newer data is not used.
pub(super) struct NotRenewed {
    pub why: String,
    /// A file could not be read. The reason may pass without a change of the file: the disk, or the limit on open files.
    pub may_pass: bool,
}

/// A service whose data can be replaced.
pub(super) trait Renewable: Send + Sync + Sized + 'static {
    /// The name of its section, for the log.
    const NAME: &'static str;

    /// The running service and the state of its files.
    fn of(lookups: &LookupServices) -> Option<(Arc<Self>, Read)>;

    fn files(&self) -> &[PathBuf];

    /// Reads the files and uses them if they are valid. Returns what is odd about their contents. Takes seconds.
    fn renew(&self) -> Result<Vec<String>, NotRenewed>;

    /// One sentence for each file of the current data of which no copy could be made.
    fn remarks(&self) -> Vec<String>;

    /// A description of the current data.
    fn describe(&self) -> String;
}

impl Renewable for Geo {
    const NAME: &'static str = "geo";

    fn of(lookups: &LookupServices) -> Option<(Arc<Self>, Read)> {
        Some((lookups.geo.clone()?, lookups.geo_read.clone()))
    }

    fn files(&self) -> &[PathBuf] {
        self.databases()
    }

    fn renew(&self) -> Result<Vec<String>, NotRenewed> {
        Self::renew(self).map_err(|why| NotRenewed { may_pass: why.is_unreadable(), why: why.to_string() })
    }

    fn remarks(&self) -> Vec<String> {
        Self::remarks(self)
    }

    fn describe(&self) -> String {
        self.status().databases.join(", ")
    }
}

impl Renewable for Postal {
    const NAME: &'static str = "postal";

    fn of(lookups: &LookupServices) -> Option<(Arc<Self>, Read)> {
        Some((lookups.postal.clone()?, lookups.postal_read.clone()))
    }

    fn files(&self) -> &[PathBuf] {
        Self::files(self)
    }

    fn renew(&self) -> Result<Vec<String>, NotRenewed> {
        Self::renew(self)
            .map_err(|why| NotRenewed { may_pass: why.is_unreadable(), why: why.to_string() })?;
        Ok(Vec::new())
    }

    fn remarks(&self) -> Vec<String> {
        Self::remarks(self)
    }

    fn describe(&self) -> String {
        let status = self.status();
        format!("{} places in {} countries", status.places, status.countries)
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
    use tokio::time::timeout;

    use super::*;

    struct FreedData(UnboundedSender<ThreadId>);

    impl Drop for FreedData {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn replaced_data_is_freed_on_a_blocking_thread_when_no_request_uses_it() {
        let (sender, mut freed) = unbounded_channel();
        let data = Arc::new(FreedData(sender));
        free(Some(&data), None);
        assert!(timeout(10 * POLL_INTERVAL, freed.recv()).await.is_err(), "a request uses it");
        drop(data);
        assert_ne!(freed.recv().await.expect("it is freed"), thread::current().id());
    }

    #[tokio::test(start_paused = true)]
    async fn data_that_is_kept_is_not_watched() {
        let data = Arc::new(());
        free(Some(&data), Some(&data));
        assert_eq!(Arc::strong_count(&data), 1);
    }
}
