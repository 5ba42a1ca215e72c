//! From a value as written to the plain value that the rest of Hostler uses. Knows no keys.

use std::time::Duration;

use super::{Auto, Count, Period, RequestPath, Size, Spares};

/// A value as written whose meaning is a `T`. Example: `"5s"` means a [`Duration`].
pub trait Meaning<T> {
    /// The plain value.
    fn meaning(&self) -> T;
}

impl<V: Meaning<T>, T> Meaning<Option<T>> for Option<V> {
    fn meaning(&self) -> Option<T> {
        self.as_ref().map(V::meaning)
    }
}

impl<V: Meaning<T>, T> Meaning<Vec<T>> for Vec<V> {
    fn meaning(&self) -> Vec<T> {
        self.iter().map(V::meaning).collect()
    }
}

impl Meaning<bool> for bool {
    fn meaning(&self) -> bool {
        *self
    }
}

impl Meaning<Duration> for Period {
    fn meaning(&self) -> Duration {
        self.0
    }
}

impl<const MIN: u64, const MAX: u64> Meaning<u64> for Size<MIN, MAX> {
    fn meaning(&self) -> u64 {
        self.0
    }
}

impl<const MIN: u64, const MAX: u64> Meaning<u64> for Count<MIN, MAX> {
    fn meaning(&self) -> u64 {
        self.0
    }
}

impl<const MIN: u64, const MAX: u64> Meaning<usize> for Count<MIN, MAX> {
    fn meaning(&self) -> usize {
        self.get()
    }
}

impl<const MIN: u64, const MAX: u64> Meaning<u16> for Count<MIN, MAX> {
    fn meaning(&self) -> u16 {
        const { assert!(MAX <= u16::MAX as u64) };
        self.0 as u16
    }
}

impl Meaning<String> for RequestPath {
    fn meaning(&self) -> String {
        self.0.clone()
    }
}

impl Meaning<hostler_worker::Spares> for Spares {
    fn meaning(&self) -> hostler_worker::Spares {
        match self {
            Self::Value(count) => hostler_worker::Spares::Fixed(count.get()),
            Self::Word(Auto) => hostler_worker::Spares::Auto,
        }
    }
}
