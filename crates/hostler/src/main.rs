//! The table of contents: arguments, configuration, server, exit code.

fn main() {}
