//! Finds libscout_run: where SCOUT_RUN_LIB_DIR says, else where pkg-config does.
use std::{env, process::Command};

fn main() {
    for name in ["SCOUT_RUN_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rustc-link-lib=dylib=scout_run");
    if let Ok(folder) = env::var("SCOUT_RUN_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        return;
    }
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    let found = Command::new(&program).args(["--variable=libdir", "scout_run"]).output();
    match found {
        Ok(said) if said.status.success() => {
            println!("cargo:rustc-link-search=native={}", String::from_utf8_lossy(&said.stdout).trim_end());
        }
        _ => panic!(
            "libscout_run is not found: `make install` of Ceiling Scout, then set PKG_CONFIG_PATH to its lib/pkgconfig, \
             or SCOUT_RUN_LIB_DIR to its lib"
        ),
    }
}
