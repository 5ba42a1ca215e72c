//! Hostler as its users run it: the program, with real Node apps behind it, seen from outside only.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod apps;
mod booting;
mod chaos;
mod claims;
mod compile_caches;
mod deaths;
mod deploys;
mod ever_new;
mod examples;
mod first_start;
mod health;
mod inherited;
mod init;
mod init_pm2;
mod keys;
mod limits;
mod listening;
mod load;
mod logs;
mod mute;
mod paths;
mod poison;
mod proc;
mod site;
mod slots;
mod slow;
mod spares;
mod stopping;
mod streaming;
mod tunnels;
mod upgrades;
mod visitors;
