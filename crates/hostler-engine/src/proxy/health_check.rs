//! Health checks of members that are not workers of ours, on connections of their own. Knows no clients, and takes no slots.

use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hostler_dispatch::{Gauge, Membership};
use hostler_wire::{MemberConnection, Stream};
use http::Request;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::ask::status_of;
use super::checked::{Checked, lock};
use super::{Connector, Endpoint, Failure, MemberNews, MemberProtocol, TlsFault, http2};
use crate::journal::Level;

/// The first check runs within this time, at a random moment.
const MAX_FIRST_DELAY: Duration = Duration::from_secs(1);
/// How much of an answer's body is read.
const MAX_READ: usize = 64 << 10;
const USER_AGENT: &str = concat!("hostler-health-check/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSettings {
    /// The path of the request. Begins with a slash.
    pub path: String,
    /// The `Host` field.
    pub host: String,
    /// The time between two checks.
    pub interval: Duration,
    /// The time limit of one check.
    pub timeout: Duration,
    /// Failures in a row that make a member unhealthy.
    pub unhealthy: u32,
    /// Successes in a row that make it healthy again.
    pub healthy: u32,
    /// The statuses that count as a success.
    pub status: RangeInclusive<u16>,
}

/// The health checks of one member. They stop when this is dropped.
pub struct Checking {
    pub settings: CheckSettings,
    task: JoinHandle<()>,
}

impl Drop for Checking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Checked {
    /// Adds one result. Returns the new state of the member if it changes.
    fn note(&mut self, outcome: Result<(), String>, settings: &CheckSettings) -> Option<bool> {
        let is_good = outcome.is_ok();
        self.passed += u64::from(is_good);
        self.failed += u64::from(!is_good);
        self.last_failure = outcome.err();
        if is_good != self.unhealthy {
            self.streak = 0;
            return None;
        }
        self.streak += 1;
        let most = if is_good { settings.healthy } else { settings.unhealthy };
        let is_news = self.streak >= most;
        if is_news {
            (self.streak, self.unhealthy) = (0, !is_good);
        }
        is_news.then_some(is_good)
    }
}

impl Checking {
    /// Starts the checks of a member. It begins as healthy, or in the state that earlier checks found.
    pub fn begin(membership: &Membership<Endpoint>, settings: CheckSettings) -> Self {
        let endpoint = membership.endpoint();
        let checker = Checker {
            gauge: membership.gauge(),
            connector: endpoint.connector.clone(),
            checked: endpoint.checked.get_or_init(Arc::default).clone(),
            label: endpoint.label.clone(),
            news: endpoint.news.clone(),
        };
        let by = settings.clone();
        Self { settings, task: tokio::spawn(async move { checker.check(&by).await }) }
    }

    /// The member has no checks any more, so it counts as healthy, also for checks that begin later.
    pub fn forget(membership: &Membership<Endpoint>) {
        if let Some(checked) = membership.endpoint().checked.get() {
            let mut checked = lock(checked);
            (checked.unhealthy, checked.streak, checked.last_failure) = (false, 0, None);
        }
        membership.set_health(true);
    }
}

/// What the checks need of the member. They must not keep the member in its pool.
struct Checker {
    gauge: Gauge<Endpoint>,
    connector: Connector,
    checked: Arc<Mutex<Checked>>,
    label: Arc<str>,
    news: Option<MemberNews>,
}

impl Checker {
    async fn check(&self, settings: &CheckSettings) {
        let mut pause = settings.interval.min(MAX_FIRST_DELAY).mul_f64(fastrand::f64());
        loop {
            sleep(pause).await;
            self.check_once(settings).await;
            pause = settings.interval.mul_f64(0.9 + 0.2 * fastrand::f64());
        }
    }

    async fn check_once(&self, settings: &CheckSettings) {
        let until = Instant::now() + settings.timeout;
        let late = |_| Err(format!("no response within {:?}", settings.timeout));
        let asked = match timeout_at(until, connect(&self.connector, settings.timeout)).await {
            // No file descriptor is left. Otherwise all members would become unhealthy, also those with kept connections.
            Ok(Err(failure)) if failure.is_by_hostler() => return,
            Ok(Err(failure)) => Err(failure.to_string()),
            Ok(Ok(connected)) => {
                let asking = ask(connected, self.connector.tls.is_some(), settings);
                timeout_at(until, asking).await.unwrap_or_else(late)
            }
            Err(elapsed) => late(elapsed),
        };
        let (outcome, rest) = match asked {
            Ok((status, rest)) if settings.status.contains(&status) => (Ok(()), rest),
            Ok((status, rest)) => (Err(format!("it answered {status}")), rest),
            Err(why) => (Err(why), None),
        };
        self.note(outcome, settings);
        if let Some(connection) = rest {
            // The head has decided the check. The body may be one that never ends.
            let _ = timeout_at(until, read_body(connection)).await;
        }
    }

    fn note(&self, outcome: Result<(), String>, settings: &CheckSettings) {
        let why = outcome.clone().err().unwrap_or_default();
        let news = lock(&self.checked).note(outcome, settings);
        let Some(is_healthy) = news else { return };
        self.gauge.set_health(is_healthy);
        let Some(MemberNews { journal, pool }) = &self.news else { return };
        let (member, path) = (&self.label, &settings.path);
        match is_healthy {
            true => {
                let passed = settings.healthy;
                let text = format!(
                    "{pool}: member {member} is healthy again: it has passed {passed} checks of {path} in a row"
                );
                journal.event(Level::Info, &text);
            }
            false => {
                let failed = settings.unhealthy;
                let text = format!(
                    "{pool}: member {member} is unhealthy: {failed} checks of {path} in a row have failed; the last: {why}"
                );
                journal.event(Level::Warn, &text);
            }
        }
    }
}

/// The status of the answer, and the connection if the body is still to be read there; or a reason for the operator.
async fn ask(
    (protocol, stream): (MemberProtocol, Stream),
    has_tls: bool,
    settings: &CheckSettings,
) -> Result<(u16, Option<MemberConnection>), String> {
    match protocol {
        MemberProtocol::Http1 => {
            let mut connection = MemberConnection::new(stream);
            let CheckSettings { path, host, .. } = settings;
            let fields = [("Host", host.as_str()), ("User-Agent", USER_AGENT), ("Connection", "close")];
            let status = status_of(&mut connection, "GET", path, &fields).await;
            Ok((status.map_err(|error| error.to_string())?, Some(connection)))
        }
        MemberProtocol::Http2 => {
            let scheme = if has_tls { "https" } else { "http" };
            let uri = format!("{scheme}://{}{}", settings.host, settings.path);
            let request = Request::get(uri).header("user-agent", USER_AGENT).body(());
            let request = request.map_err(|error| error.to_string())?;
            let status = http2::ask(stream, request).await.map_err(|error| error.to_string())?;
            Ok((status, None))
        }
    }
}

/// A connection, and what the member speaks there. Which protocol it offers may not be known yet, or not be true any more.
async fn connect(connector: &Connector, time_limit: Duration) -> Result<(MemberProtocol, Stream), Failure> {
    let protocol = connector.spoken();
    let other = match connector.connect(protocol, time_limit).await {
        Err(Failure::Tls(TlsFault::NoHttp2, _)) => MemberProtocol::Http1,
        Err(Failure::NotExpressible) => MemberProtocol::Http2,
        outcome => return outcome.map(|stream| (protocol, stream)),
    };
    connector.connect(other, time_limit).await.map(|stream| (other, stream))
}

/// Reads the body of an answer, so that the member does not see its connection reset. An error in it does not matter.
async fn read_body(mut connection: MemberConnection) {
    let mut body = Vec::new();
    while body.len() < MAX_READ {
        if poll_fn(|cx| connection.poll_body(cx, &mut body, MAX_READ)).await.unwrap_or(true) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hostler_dispatch::{Pool, PoolSettings};
    use tokio::time::sleep_until;

    use super::*;
    use crate::proxy::Meter;
    use crate::proxy::tests::{Dialled, SimulatedMember, listen, simulated_address};

    fn settings() -> CheckSettings {
        CheckSettings {
            path: "/".into(),
            host: "a".into(),
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            unhealthy: 3,
            healthy: 2,
            status: 200..=299,
        }
    }

    #[derive(Default)]
    struct WithoutDescriptor(AtomicUsize);

    impl SimulatedMember for WithoutDescriptor {
        fn dial(self: Arc<Self>) -> Dialled {
            self.0.fetch_add(1, Ordering::Relaxed);
            Dialled::NoDescriptor
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_for_which_no_file_descriptor_is_left_says_nothing_about_the_member() {
        let member = Arc::new(WithoutDescriptor::default());
        listen(vec![member.clone() as Arc<dyn SimulatedMember>]);
        let pool = Pool::new("app", PoolSettings::default());
        let meter = Arc::new(Meter::new(1));
        let endpoint = Endpoint::new(simulated_address(0).into(), "a".into(), meter, 1, None);
        let membership = pool.join(endpoint, 1);
        let checking = Checking::begin(&membership, settings());
        while member.0.load(Ordering::Relaxed) < 10 {
            sleep_until(Instant::now() + Duration::from_secs(1)).await;
        }
        let checked = membership.endpoint().checked().unwrap();
        assert_eq!((checked.passed, checked.failed, checked.unhealthy), (0, 0, false));
        assert_eq!(pool.reachable_members(), 1);
        drop(checking);
    }

    #[test]
    fn failures_in_a_row_make_a_member_unhealthy_and_successes_in_a_row_healthy() {
        let settings = settings();
        let mut checked = Checked::default();
        let outcomes = "++--+---+-++-";
        let news: Vec<_> = outcomes
            .chars()
            .map(|sign| {
                let outcome = if sign == '+' { Ok(()) } else { Err("no answer".into()) };
                checked.note(outcome, &settings)
            })
            .collect();
        let mut expected = vec![None; outcomes.len()];
        (expected[7], expected[11]) = (Some(false), Some(true));
        assert_eq!(news, expected);
        assert_eq!((checked.passed, checked.failed, checked.unhealthy), (6, 7, false));
        assert_eq!(checked.last_failure.as_deref(), Some("no answer"));
    }
}
