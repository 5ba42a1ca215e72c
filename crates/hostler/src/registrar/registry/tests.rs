//! What follows from messages, silence and outages, on a clock that stands still.
