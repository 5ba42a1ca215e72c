//! Bugs that a test can plant into a pool, to prove that the simulation finds them.

/// A planted bug. See where [`planted!`] names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A slot that comes back is counted as two.
    SlotGivenTwice,
    /// The second request of a class gets a slot before the first.
    WrongOrder,
    /// A request whose member was lost before it took its slot is forgotten.
    ForgottenRequest,
    /// Only one waiting request gets a slot at a time, although several are free.
    IdleSlot,
    /// A request that has got a slot is not told.
    LostWake,
    /// A request that waited too long gets a slot.
    LateSlot,
    /// The lower classes are served only if no higher one waits.
    StarvedClass,
    /// Short requests overtake a long one for ever.
    EndlessDelay,
    /// The sums over the members miss those that leave.
    WrongTotals,
    /// What a request has really cost is not charged to its key.
    LostCorrection,
    /// A key that has no request for a moment has used nothing.
    ForgottenDebt,
    /// A key is not charged before its request ends.
    LateCharge,
    /// The time in which requests waited counts as rest.
    RestWhileWaiting,
    /// A full queue refuses a request of a high class, and keeps those of the lower ones.
    LowerStays,
    /// The slot of a request whose client has left does not come back.
    AbandonedSlot,
    /// A key pays only for the time until its client has left.
    FreeReset,
    /// The time until clients leave counts as the time that requests take.
    CheapReset,
    /// The payer is not told that the client has left.
    UntoldReset,
    /// The payer is told twice for how long a slot was held.
    PaidTwice,
    /// The key pays for a death of the member over a request that was not processed.
    PaidUnprocessed,
}

impl Bug {
    pub const ALL: [Self; 20] = [
        Self::SlotGivenTwice,
        Self::WrongOrder,
        Self::ForgottenRequest,
        Self::IdleSlot,
        Self::LostWake,
        Self::LateSlot,
        Self::StarvedClass,
        Self::EndlessDelay,
        Self::WrongTotals,
        Self::LostCorrection,
        Self::ForgottenDebt,
        Self::LateCharge,
        Self::RestWhileWaiting,
        Self::LowerStays,
        Self::AbandonedSlot,
        Self::FreeReset,
        Self::CheapReset,
        Self::UntoldReset,
        Self::PaidTwice,
        Self::PaidUnprocessed,
    ];
}
