//! The headers in which proxies name a client. Knows how each is written, but not which proxies are trusted.

/// A header in which a proxy names the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AddressHeader {
    /// A list. Most proxies append the address of the other end of their connection.
    #[default]
    XForwardedFor,
    /// The list of RFC 7239.
    Forwarded,
    /// One address.
    XRealIp,
    /// One address, from Cloudflare.
    CfConnectingIp,
    /// One address, from Akamai and Cloudflare Enterprise.
    TrueClientIp,
}

impl AddressHeader {
    /// The field's name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::XRealIp => "x-real-ip",
            Self::CfConnectingIp => "cf-connecting-ip",
            Self::TrueClientIp => "true-client-ip",
        }
    }

    /// Whether each proxy on the way adds an entry. The other headers hold one address, from the last proxy that set it.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::XForwardedFor | Self::Forwarded)
    }
}
