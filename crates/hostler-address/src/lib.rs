//! Who a client is: the address of the socket, or what trusted proxies say; and what kind of address that is.
