//! What the operator wrote (`file`) and what it means (`resolved`). Knows no sockets, pools or requests.
