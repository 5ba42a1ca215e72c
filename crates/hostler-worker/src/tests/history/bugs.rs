//! Bugs that a test can plant into the lifecycle and the plan, to prove that the simulation finds them.

/// A planted bug. See where [`planted!`] names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A successor takes over as soon as it is in the pool.
    EarlyTakeOver,
    /// A worker leaves when its successor begins to boot.
    OldLeavesFirst,
    /// A successor that has failed takes over all the same.
    FailedTakesOver,
    /// A drained worker stays in the pool.
    DrainedInPool,
    /// A worker that boots does not hear that it is to stop.
    DeafBoot,
    /// A boot that works does not end the count of failed boots.
    EndlessRest,
    /// A restart during a restart is not carried out.
    LostRestart,
}

impl Bug {
    pub const ALL: [Self; 7] = [
        Self::EarlyTakeOver,
        Self::OldLeavesFirst,
        Self::FailedTakesOver,
        Self::DrainedInPool,
        Self::DeafBoot,
        Self::EndlessRest,
        Self::LostRestart,
    ];
}
