//! Generates the client from the project's protos. protox stands for protoc, so that
//! nothing but cargo is needed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    // buf/validate/validate.proto, which the protos import; run.sh lays it there.
    let include = env::var_os("CONTEXTD_PROTO_INCLUDE")
        .map_or_else(|| root.join(".build/include"), PathBuf::from);
    println!("cargo::rerun-if-env-changed=CONTEXTD_PROTO_INCLUDE");
    println!(
        "cargo::rerun-if-changed={}",
        root.join("proto/contextd/v1").display()
    );

    let protos = ["contextd/v1/context_service.proto"];
    let descriptors = protox::compile(protos, [root.join("proto"), include])?;
    fs::write(
        PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin"),
        descriptors.encode_to_vec(),
    )?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(descriptors)?;
    Ok(())
}
