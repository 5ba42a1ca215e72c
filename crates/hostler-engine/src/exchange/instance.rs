//! The application instance behind a registered member, as its registration describes it. Knows no registry.

use std::collections::BTreeMap;

/// An instance of an application. Values that the registration lacks are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// The application's id (`app`).
    pub app: String,
    /// The instance's own id (`private_instance_id`).
    pub id: String,
    /// Its number among those of the application (`private_instance_index`).
    pub index: String,
    /// Where it runs (`availability_zone`).
    pub zone: String,
    /// What else was said (`tags`).
    pub tags: BTreeMap<String, String>,
}
