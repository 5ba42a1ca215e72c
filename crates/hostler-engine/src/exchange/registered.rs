//! What the kind of a registered route keeps for one exchange. Knows no kind and no routes.

use std::any::Any;
use std::fmt::Debug;

use super::{Edits, Exchange, Whole};

/// The facts of one exchange by a registered route. Other exchanges have none, so they stay small.
pub trait RegisteredRequest: Any + Debug + Send + Sync {
    /// The id of the request by the rules of the route's kind, for the log.
    fn id(&self) -> &str;

    /// The id of the instance that answered, or of the last one that was tried.
    fn instance_id(&self) -> Option<&str>;

    /// Takes back the edits that a member's answer caused, because an answer of our own replaces it.
    fn take_back_answer(&self, to_client: &mut Edits);

    /// The answer to a refusal in the form of the route's kind. `refusal` is the gateway's `Refusal`. None: the form is Hostler's own.
    fn refuse(&mut self, exchange: &Exchange, refusal: &dyn Any) -> Option<Whole>;
}

impl Exchange {
    /// The answer to a refusal in the form of the kind of the route. None: the form is Hostler's own.
    pub fn registered_answer(&mut self, refusal: &dyn Any) -> Option<Whole> {
        let mut registered = self.registered.take()?;
        let answer = registered.refuse(self, refusal);
        self.registered = Some(registered);
        answer
    }
}
