// SPDX-License-Identifier: Apache-2.0
//! Compiles the XDP programs with clang.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let machine = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    for name in ["send", "receive", "redirect"] {
        let done = Command::new("clang")
            .args([
                "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror",
            ])
            // Without this the objects name the folder of the clone, so that two clones have different generators.
            .arg("-ffile-compilation-dir=.")
            // Debian has <asm/types.h> there: in libc6-dev, and in libc6-dev-arm64-cross for another machine.
            .arg(format!("-I/usr/include/{machine}-linux-gnu"))
            .arg(format!("-I/usr/{machine}-linux-gnu/include"))
            .args(["-c", &format!("bpf/{name}.bpf.c"), "-o"])
            .arg(out.join(format!("{name}.bpf.o")))
            .status();
        match done {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("clang could not compile bpf/{name}.bpf.c: {status}"),
            Err(error) => {
                panic!("clang is needed for the XDP programs (apt-get install clang libbpf-dev): {error}")
            }
        }
    }
}
