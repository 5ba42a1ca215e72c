//! The admin listener: it answers questions about the Status and takes commands. Knows no requests of clients.

mod access;
mod advice;
mod cache;
mod commands;
mod connections;
mod docs;
mod front;
mod health;
mod http;
mod inspect;
mod live;
mod machine;
mod metrics;
mod newest;
pub mod note;
mod process;
mod registrations;
mod routes;
mod socket;
mod status;
pub(crate) mod table;
mod temp_free;
mod visitors;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

use access::AdminClient;

pub use access::{AccessRules, AdminAccess};
pub use advice::{ADVICE, AdviceRow, AdviceView, watch as watch_for_advice};
pub use commands::{AdminCommand, CommandDone, CommandError, CommandSender, PendingCommand, Purging};
pub use http::{Answered, FIELD as COMMAND_FIELD, PAUSE};
pub use inspect::InspectionFrame;
pub use metrics::{Kind, METRICS};
pub use registrations::Registrations;
pub use routes::as_text;
pub use socket::{AdminSocket, remove_if_dead};
pub use status::{LastReload, PoolSource, RouteSource, Sources, Status};
pub use table::table;
pub use temp_free::TempFree;

/// Serves until `end` is true, then answers each connection that was accepted. Admin requests are few, so they run on the control thread and take
/// no time from the data plane.
pub async fn serve(
    listener: AdminListener,
    sources: Arc<Sources>,
    commands: CommandSender,
    access: Arc<AdminAccess>,
    end: watch::Receiver<bool>,
) {
    let commands = Router::new()
        .route("/restart", post(http::restart_all))
        .route("/pools/{pool}/restart", post(http::restart))
        .route("/pools/{pool}/pause", post(http::pause))
        .route("/pools/{pool}/resume", post(http::resume))
        .route("/pools/{pool}/workers/{worker}/drain", post(http::drain))
        .route("/pools/{pool}/workers/{worker}/undrain", post(http::undrain))
        .route("/purge", post(cache::purge))
        .route("/reload", post(http::reload))
        .route("/upgrade", post(http::upgrade))
        .with_state(commands)
        .merge(inspect::routes(sources.clone()));
    let live = live::begin(sources.clone());
    let live_page = live::router(live.clone());
    let questions = Router::new()
        .route("/", get(front::front))
        .route("/status", get(status))
        .route("/metrics", get(metrics::metrics))
        .route("/table", get(routes::table))
        .route("/routes", get(routes::registered))
        .route("/health", get(health::without_reason))
        .route("/health/live", get(health::live))
        .route("/health/startup", get(health::startup))
        .route("/health/ready", get(health::ready))
        .route("/health/ready/{pool}", get(health::pool))
        .with_state(sources);
    let check = axum::middleware::from_fn_with_state(access, access::check);
    let all = questions.merge(commands).merge(live_page).merge(docs::router()).layer(check);
    // The events of the live page have no end of their own.
    let ending = || live.end();
    match listener {
        AdminListener::Tcp(listener) => {
            connections::serve(
                listener,
                all,
                |_, address| (AdminClient::at(*address), Some(address.ip())),
                end,
                ending,
            )
            .await;
        }
        AdminListener::Unix(listener) => {
            connections::serve(listener, all, |stream, _| (AdminClient::of(stream), None), end, ending).await;
        }
    }
}

/// A socket that the runtime serves.
pub enum AdminListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl TryFrom<AdminSocket> for AdminListener {
    type Error = std::io::Error;

    fn try_from(socket: AdminSocket) -> std::io::Result<Self> {
        Ok(match socket {
            AdminSocket::Tcp(socket) => Self::Tcp(TcpListener::from_std(socket)?),
            AdminSocket::Unix(socket, _) => Self::Unix(UnixListener::from_std(socket)?),
        })
    }
}

async fn status(State(sources): State<Arc<Sources>>) -> impl IntoResponse {
    let json = serde_json::to_vec_pretty(&sources.status()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], json)
}
