//! The macro `section!`, which defines a section of the file. Knows no keys.

/// Defines a section of the file: the struct as written here, and its default.
///
/// Each key has its default after `=`. A key that ends in `=> worker.FIELD` is a setting of the workers, and needs no code in `resolve`:
/// `for_workers` puts its value into that field of [`hostler_worker::WorkerSettings`]. [`crate::value::Meaning`] converts it. Example:
///
/// ```ignore
/// pub stop_timeout: Period = Period::seconds(10) => worker.stop_timeout,
/// ```
macro_rules! section {
    (
        $(#[$about_section:meta])*
        pub struct $section:ident {
            $(
                $(#[$about_key:meta])*
                pub $key:ident: $type:ty = $default:expr $(=> worker.$($field:ident).+)?,
            )+
        }
    ) => {
        $(#[$about_section])*
        pub struct $section {
            $($(#[$about_key])* pub $key: $type,)+
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $section {
            /// Settings of workers, from the keys that say `=> worker.FIELD`. All other fields have their defaults.
            pub fn for_workers(&self) -> hostler_worker::WorkerSettings {
                let mut worker = hostler_worker::WorkerSettings::default();
                $($(worker.$($field).+ = $crate::value::Meaning::meaning(&self.$key);)?)+
                worker
            }
        }
    };
}
pub(super) use section;
