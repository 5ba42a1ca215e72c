//! A list of CPUs in the kernel's form, such as `0,2-3`. Knows no machine.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// How many CPUs the kernel's own set has room for (`CPU_SETSIZE`).
pub(super) const MAX_CPU: usize = 1024;

/// Numbers of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(BTreeSet<usize>);

impl CpuList {
    /// The numbers, from the lowest on.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    /// How many CPUs it names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it names no CPU.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it names this CPU.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }
}

impl FromIterator<usize> for CpuList {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let number: Option<usize> = text.trim().parse().ok();
            number.ok_or_else(|| format!("{:?} is not the number of a CPU", text.trim()))
        };
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(format!("{:?} ends before it begins", part.trim()));
            }
            if last >= MAX_CPU {
                return Err(format!("{last} is too high; the highest CPU is {}", MAX_CPU - 1));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = left.next() {
            let mut last = first;
            while let Some(next) = left.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_shown_in_the_form_of_the_kernel() {
        for (written, shown) in [
            ("0", "0"),
            ("0-3", "0-3"),
            ("3,1", "1,3"),
            ("0, 2-3 ,2", "0,2,3"),
            ("7-9,0", "0,7-9"),
            ("5-5", "5"),
        ] {
            assert_eq!(written.parse::<CpuList>().unwrap().to_string(), shown, "{written}");
        }
        for wrong in ["", "a", "1-", "-1", "3-1", "1,,2", "0x1", "1024", "0-99999999"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong}");
        }
    }
}
