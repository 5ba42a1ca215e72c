//! The names of fields that are treated specially, recognised with a few comparisons. Knows no values.

macro_rules! names {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// The field names that HTTP/1.1 or a proxy treats specially. All other names are `Other`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is its field name")]
        pub enum Name { Other, $($variant),* }

        /// The number of names, `Other` included.
        pub(super) const NAMES: usize = [$($text),*].len() + 1;

        impl Name {
            /// The class of a field name. Case is ignored.
            pub fn of(name: &[u8]) -> Self {
                match name.len() {
                    // The first letter is compared first: it is different for most names of the same length.
                    $(n if n == $text.len()
                        && name[0] | 0x20 == $text.as_bytes()[0]
                        && {
                            const TEXT: [u8; $text.len()] = *$text.as_bytes().first_chunk().expect("invariant: its own length");
                            const LETTERS: [u8; $text.len()] = letters(TEXT);
                            is_same(name, TEXT, LETTERS)
                        } => Self::$variant,)*
                    _ => Self::Other,
                }
            }

            /// The registered name in lower case. Empty for `Other`.
            pub fn as_str(self) -> &'static str {
                match self { Self::Other => "", $(Self::$variant => $text),* }
            }
        }
    };
}

/// The bit for case, at each position with a letter.
const fn letters<const N: usize>(text: [u8; N]) -> [u8; N] {
    let mut bits = [0; N];
    let mut at = 0;
    while at < N {
        if text[at].is_ascii_lowercase() {
            bits[at] = 0x20;
        }
        at += 1;
    }
    bits
}

/// Compares without case and without a branch for each letter, so that the compiler can compare several at once.
#[inline]
fn is_same<const N: usize>(name: &[u8], text: [u8; N], letters: [u8; N]) -> bool {
    let Some(name) = name.first_chunk::<N>() else { return false };
    (0..N).fold(0, |unlike, at| unlike | ((name[at] | letters[at]) ^ text[at])) == 0
}

names! {
    Host = "host",
    Connection = "connection",
    ContentLength = "content-length",
    TransferEncoding = "transfer-encoding",
    KeepAlive = "keep-alive",
    ProxyConnection = "proxy-connection",
    Te = "te",
    Trailer = "trailer",
    Upgrade = "upgrade",
    Expect = "expect",
    Http2Settings = "http2-settings",
    Via = "via",
    Date = "date",
    ContentType = "content-type",
    ContentEncoding = "content-encoding",
    ContentRange = "content-range",
    ContentDigest = "content-digest",
    ContentMd5 = "content-md5",
    ReprDigest = "repr-digest",
    Digest = "digest",
    AcceptEncoding = "accept-encoding",
    AcceptRanges = "accept-ranges",
    CacheControl = "cache-control",
    Pragma = "pragma",
    Authorization = "authorization",
    Cookie = "cookie",
    Range = "range",
    IfRange = "if-range",
    IfMatch = "if-match",
    IfNoneMatch = "if-none-match",
    IfModifiedSince = "if-modified-since",
    IfUnmodifiedSince = "if-unmodified-since",
    Etag = "etag",
    Vary = "vary",
    Age = "age",
    Forwarded = "forwarded",
    XForwardedFor = "x-forwarded-for",
    XForwardedProto = "x-forwarded-proto",
    XForwardedHost = "x-forwarded-host",
    XForwardedPort = "x-forwarded-port",
    XForwardedServer = "x-forwarded-server",
    XForwardedPrefix = "x-forwarded-prefix",
    XRealIp = "x-real-ip",
    CfConnectingIp = "cf-connecting-ip",
    TrueClientIp = "true-client-ip",
    XRequestId = "x-request-id",
    IdempotencyKey = "idempotency-key",
    UserAgent = "user-agent",
    Referer = "referer",
    Accept = "accept",
}

impl Name {
    /// Fields for one connection only (RFC 9110 section 7.6.1). They are never forwarded. `Transfer-Encoding` is one of
    /// them because every hop frames the message itself. `Trailer` is not, because trailers are forwarded.
    pub fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::KeepAlive
                | Self::ProxyConnection
                | Self::Te
                | Self::TransferEncoding
                | Self::Upgrade
                | Self::Http2Settings
        )
    }

    /// Fields that define the message. A sender must not be able to remove them by naming them in `Connection`.
    pub(super) fn is_essential(self) -> bool {
        matches!(self, Self::Host | Self::ContentLength | Self::TransferEncoding)
    }
}
