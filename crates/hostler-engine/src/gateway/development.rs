//! Pages for the developer of an app (`hostler run --watch`): a page waits while workers restart, and shows why they did not start. Knows no
//! files and no workers.
//!
//! Only navigations of a browser are concerned: GET requests for a page. All other requests go to the pool, whatever the state is.

use std::time::Duration;

use hostler_wire::{Name, ResponseHead, Whole, media_type, tokens};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::exchange::Exchange;

/// How long a page waits for a restart. Then it goes to the workers that there are.
const RESTART_LIMIT: Duration = Duration::from_secs(15);
/// A request with this field comes from the script of the page. The field of the answer is the current state.
const FIELD: &str = "Hostler-Development";

/// Whether the newest code serves.
#[derive(Clone, Default)]
pub enum DevelopmentState {
    /// As far as is known, it does.
    #[default]
    Serving,
    /// A file has changed, and workers with the newest code boot.
    Restarting,
    /// It does not start. The page says why.
    Broken {
        /// Differs from that of every other failure.
        number: u64,
        page: Whole,
    },
}

/// Answers requests as the state demands.
pub struct DevelopmentPages {
    /// The name of the pool with the workers that restart.
    pub pool: String,
    /// The sender sets the state.
    pub state: watch::Receiver<DevelopmentState>,
}

impl DevelopmentPages {
    /// The answer to a request for this pool. None if a worker answers it.
    pub(super) async fn answer(&self, pool: &str, exchange: &mut Exchange) -> Option<Whole> {
        if pool != self.pool || exchange.head.method() != b"GET" {
            return None;
        }
        if exchange.head.fields.get(FIELD).is_some() {
            // It comes twice a second, so it has no line in the log.
            exchange.is_health_check = true;
            return Some(told(&self.state.borrow()));
        }
        if !is_navigation(exchange) {
            return None;
        }
        let mut state = self.state.clone();
        let is_over = |state: &DevelopmentState| !matches!(state, DevelopmentState::Restarting);
        // Either the restart is over, or the limit has come, or Hostler ends.
        let _ = timeout(RESTART_LIMIT, state.wait_for(is_over)).await;
        match &*self.state.borrow() {
            DevelopmentState::Broken { page, .. } => Some(page.clone()),
            DevelopmentState::Serving | DevelopmentState::Restarting => None,
        }
    }
}

/// The state for the script of the page.
fn told(state: &DevelopmentState) -> Whole {
    let mut head = ResponseHead::with_status(204);
    let value = match state {
        DevelopmentState::Serving => "serving".to_owned(),
        DevelopmentState::Restarting => "restarting".to_owned(),
        DevelopmentState::Broken { number, .. } => format!("broken {number}"),
    };
    head.fields.add(FIELD.as_bytes(), value.as_bytes());
    head.fields.add(b"Cache-Control", b"no-store");
    Whole::new(head, Vec::new())
}

/// Whether a browser asks for a page. `Sec-Fetch-Mode` says it, but browsers send that field only over TLS and to the own machine. Otherwise
/// `Accept` names HTML: scripts and programs accept everything (`*/*`).
fn is_navigation(exchange: &Exchange) -> bool {
    let fields = &exchange.head.fields;
    let mut mode = fields.values("Sec-Fetch-Mode").peekable();
    if mode.peek().is_some() {
        return mode.any(|mode| mode.eq_ignore_ascii_case(b"navigate"));
    }
    fields
        .all(Name::Accept)
        .flat_map(tokens)
        .any(|range| media_type(range).eq_ignore_ascii_case(b"text/html"))
}

#[cfg(test)]
mod tests {
    use hostler_wire::Limits;
    use tokio::task::yield_now;
    use tokio::time::Instant;

    use super::super::tests::exchange;
    use super::*;

    fn broken() -> DevelopmentState {
        DevelopmentState::Broken {
            number: 7,
            page: Whole::new(ResponseHead::with_status(503), b"it does not start".to_vec()),
        }
    }

    async fn status(state: &watch::Sender<DevelopmentState>, request: &str) -> Option<u16> {
        let mut exchange = exchange();
        exchange.head.parse(format!("{request}\r\n\r\n").as_bytes(), &Limits::default()).unwrap();
        let pages = DevelopmentPages { pool: "app".into(), state: state.subscribe() };
        assert!(pages.answer("other", &mut exchange).await.is_none());
        pages.answer("app", &mut exchange).await.map(|whole| whole.head.status)
    }

    const BROWSER: &str = "GET / HTTP/1.1\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8";

    #[tokio::test]
    async fn only_a_browser_that_asks_for_a_page_gets_the_page() {
        let state = watch::Sender::new(broken());
        assert_eq!(status(&state, BROWSER).await, Some(503));
        assert_eq!(
            status(&state, "GET / HTTP/1.1\r\nSec-Fetch-Mode: navigate\r\nAccept: */*").await,
            Some(503)
        );
        for other in [
            "GET / HTTP/1.1",
            "GET / HTTP/1.1\r\nAccept: */*",
            "GET / HTTP/1.1\r\nAccept: application/json",
            "GET / HTTP/1.1\r\nAccept: text/html\r\nSec-Fetch-Mode: cors",
            "POST / HTTP/1.1\r\nAccept: text/html\r\nSec-Fetch-Mode: navigate",
        ] {
            assert_eq!(status(&state, other).await, None, "{other}");
        }
        let script = "GET / HTTP/1.1\r\nHostler-Development: 7\r\nSec-Fetch-Mode: cors";
        assert_eq!(status(&state, script).await, Some(204));
        state.send_replace(DevelopmentState::Serving);
        assert_eq!(status(&state, BROWSER).await, None);
        assert_eq!(status(&state, script).await, Some(204));
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_waits_for_the_end_of_a_restart_and_not_for_ever() {
        let state = watch::Sender::new(DevelopmentState::Restarting);
        let began = Instant::now();
        assert_eq!(status(&state, BROWSER).await, None);
        assert_eq!(began.elapsed().as_secs(), RESTART_LIMIT.as_secs());
        let ends = async {
            yield_now().await;
            state.send_replace(broken());
        };
        let (page, ()) = tokio::join!(status(&state, BROWSER), ends);
        assert_eq!(page, Some(503));
        assert_eq!(status(&state, "GET / HTTP/1.1").await, None, "other requests do not wait");
    }
}
