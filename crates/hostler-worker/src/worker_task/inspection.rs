//! The profile or heap snapshot that is taken of a worker at present. Does not know how it is taken.

use tokio::sync::{mpsc, oneshot};

use crate::inspection::{InspectionEvent, InspectionKind};
use crate::lifecycle::LifecycleEvent;

/// An inspection that is under way.
pub struct Inspection {
    pub(super) kind: InspectionKind,
    pub(super) events: mpsc::Sender<InspectionEvent>,
    /// Hears that the worker has finished its requests.
    pub(super) finished: Option<oneshot::Sender<()>>,
    /// The worker hangs. It is killed when the profile, which shows where, is complete.
    pub(super) hangs: Option<LifecycleEvent>,
}
