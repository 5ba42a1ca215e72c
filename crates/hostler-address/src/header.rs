//! The headers in which proxies name a client. Knows how each is written, not who is believed.

/// A header in which a proxy names the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AddressHeader {
    /// A list to which most proxies append the address of whoever has connected to them.
    #[default]
    XForwardedFor,
    /// The same in the words of RFC 7239.
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

    /// Every proxy on the way has its place in it; the others hold what the last that cared has written.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::XForwardedFor | Self::Forwarded)
    }
}
