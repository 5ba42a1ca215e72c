//! The facts of a registered member, and how much memory they take. Knows no routes.

use std::sync::Arc;

use hostler_engine::proxy::Instance;

use super::message::{Nullable, Registration};

/// The memory of a member in a route, in bytes, without its texts.
const MEMBER: u64 = 1 << 10;
/// The memory of a tag, in bytes, without its texts.
const TAG: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrarFacts {
    /// `host:port`. It identifies the member in its route.
    pub address: Box<str>,
    pub host: Box<str>,
    pub port: u16,
    pub tls: bool,
    pub http2: bool,
    /// The name that the member's certificate must have. Empty: its host.
    pub san: Box<str>,
    pub segment: Box<str>,
    pub instance: Arc<Instance>,
}

impl RegistrarFacts {
    pub fn of(message: &Registration) -> Self {
        let port = message.chosen_port();
        let tags = message.tags.iter().map(|(name, Nullable(value))| (name.clone(), value.clone()));
        Self {
            address: address(&message.host, port).into(),
            host: message.host.as_str().into(),
            port,
            tls: message.has_tls(),
            http2: message.protocol == "http2",
            san: message.server_cert_domain_san.as_str().into(),
            segment: message.isolation_segment.as_str().into(),
            instance: Arc::new(Instance {
                app: message.app.clone(),
                id: message.private_instance_id.clone(),
                index: message.private_instance_index.clone(),
                zone: message.availability_zone.clone(),
                tags: tags.collect(),
            }),
        }
    }

    /// The approximate size in memory.
    pub fn bytes(&self) -> u64 {
        let Instance { app, id, index, zone, tags } = &*self.instance;
        let texts = [&*self.address, &self.host, &self.san, &self.segment, app, id, index, zone];
        let tags: usize = tags.iter().map(|(name, value)| TAG + name.len() + value.len()).sum();
        MEMBER + (texts.iter().map(|text| text.len()).sum::<usize>() + tags) as u64
    }
}

/// `host:port`.
pub fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
