//! On which CPUs workers run, as written. Knows no machine and no keys.

use std::fmt;
use std::str::FromStr;

use hostler_worker::{CpuList, CpuSetting};

use super::{Meaning, one_string};

/// `auto`, `off`, or lists of CPUs with blanks between them: one list for each worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Cpus(pub CpuSetting);

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lists =
            |text: &str| text.split_ascii_whitespace().map(str::parse).collect::<Result<Vec<CpuList>, _>>();
        match text {
            "auto" => Ok(Self(CpuSetting::Auto)),
            "off" => Ok(Self(CpuSetting::Off)),
            _ => match lists(text) {
                Ok(lists) if !lists.is_empty() => Ok(Self(CpuSetting::Lists(lists))),
                Ok(_) => Err(format!("{text:?} is not {}", <Self as super::OneString>::EXPECTS)),
                Err(why) => Err(format!("{why}; expected {}", <Self as super::OneString>::EXPECTS)),
            },
        }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            CpuSetting::Auto => f.write_str("auto"),
            CpuSetting::Off => f.write_str("off"),
            CpuSetting::Lists(lists) => {
                let lists: Vec<String> = lists.iter().map(ToString::to_string).collect();
                f.write_str(&lists.join(" "))
            }
        }
    }
}

one_string!(
    Cpus,
    kind: "`\"auto\"`, `\"off\"` or lists of CPUs",
    expects: "\"auto\", \"off\" or lists of CPUs such as \"0-1 2-3\""
);

impl Meaning<CpuSetting> for Cpus {
    fn meaning(&self) -> CpuSetting {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stands_for_each_worker() {
        for (written, shown) in [("auto", "auto"), ("off", "off"), ("3", "3"), (" 0,1-3  4 ", "0-3 4")] {
            assert_eq!(written.parse::<Cpus>().unwrap().to_string(), shown, "{written}");
        }
        for wrong in ["", " ", "on", "Auto", "0;1", "0 x", "auto 1", "3-1"] {
            assert!(wrong.parse::<Cpus>().is_err(), "{wrong}");
        }
    }
}
