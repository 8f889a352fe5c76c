//! Generates the client from the project's protos. protoc comes as a crate, so that nothing
//! but cargo is needed.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let protos = root.join("proto");
    // buf/validate/validate.proto, which the protos import; run.sh lays it there.
    let include = env::var_os("CONTEXTD_PROTO_INCLUDE")
        .map_or_else(|| root.join(".build/include"), PathBuf::from);
    println!("cargo::rerun-if-env-changed=CONTEXTD_PROTO_INCLUDE");
    println!(
        "cargo::rerun-if-changed={}",
        protos.join("contextd/v1").display()
    );

    let mut config = tonic_prost_build::Config::new();
    config.protoc_executable(protoc_bin_vendored::protoc_bin_path()?);
    tonic_prost_build::configure()
        .build_server(false)
        .file_descriptor_set_path(PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin"))
        .compile_with_config(
            config,
            &[protos.join("contextd/v1/context_service.proto")],
            &[protos, include, protoc_bin_vendored::include_path()?],
        )?;
    Ok(())
}
