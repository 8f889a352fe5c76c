//! Stubs of the API `contextd.v1`, generated from its protos, whose comments are those of the
//! items here. `examples/rust` in the repository shows an agent that uses them.

#![allow(clippy::all, rustdoc::all)]

include!(concat!(env!("OUT_DIR"), "/contextd.v1.rs"));
