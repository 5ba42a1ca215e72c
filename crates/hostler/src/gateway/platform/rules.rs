//! What holds for all registered routes: the settings of `[platform]`, ready to use. Knows no requests.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::{Compat, Platform};

/// The settings of `[platform]`, ready to use. One for all registered routes.
pub struct Rules {
    /// As written.
    pub settings: Platform,
    /// What `X-Vcap-Router` says.
    pub router: IpAddr,
    /// From the beginning of a drain on, health checks are told to go elsewhere.
    draining: AtomicBool,
}

impl Rules {
    /// `router`: the address by which others know this machine.
    pub fn new(settings: Platform, router: IpAddr) -> Self {
        Self { settings, router, draining: AtomicBool::new(false) }
    }

    /// Whether gorouter's habits count where Hostler's are safer.
    pub fn is_compat(&self) -> bool {
        self.settings.compat == Compat::Gorouter
    }

    /// From now on, health checks are told to go elsewhere.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether they are.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
