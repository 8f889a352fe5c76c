//! Generates the stubs from the protos of the package, or of the repository. protoc comes as a
//! crate, so that nothing but cargo is needed.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let own = here.join("proto");
    let (protos, include) = if own.exists() {
        (own.clone(), own)
    } else {
        // buf/validate/validate.proto, which the protos import, is made by make.
        let root = here.join("../..");
        (root.join("proto"), root.join(".build/include"))
    };
    println!("cargo::rerun-if-changed={}", protos.display());
    let files = ["context", "compaction", "transcript"]
        .map(|service| protos.join(format!("contextd/v1/{service}_service.proto")));
    let mut config = tonic_prost_build::Config::new();
    config.protoc_executable(protoc_bin_vendored::protoc_bin_path()?);
    tonic_prost_build::configure()
        .build_server(false)
        .compile_with_config(
            config,
            &files,
            &[protos, include, protoc_bin_vendored::include_path()?],
        )?;
    Ok(())
}
