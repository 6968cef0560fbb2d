// SPDX-License-Identifier: Apache-2.0
//! `espbench-traffic wire` joins two tap interfaces by a copy loop, in place of a DUT.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use crate::commands::{cli, output};
use crate::failure::{Failure, Outcome};
use crate::host::netns::Netns;
use crate::host::threads;
use crate::protocol::Event;

/// Length of the longest frame that a tap hands over, its virtio-net header included.
const LONGEST: usize = 65_536 + 64;

/// Attaches to a tap interface.
fn attach(name: &str, vnet_header: bool) -> Outcome<File> {
    let failed = |error: &std::io::Error| {
        let mut failure = Failure::io(format!("tap {name}"), error);
        if error.raw_os_error() == Some(libc::EBUSY) {
            failure.hint = "another process is attached to it; end that one first".into();
        } else if failure.hint.is_empty() {
            failure.hint = format!("it must be a tap that exists: ip tuntap add {name} mode tap vnet_hdr");
        }
        failure
    };
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(Failure::new(
            format!("'{name}' is not an interface name"),
            "names have 1 to 15 characters",
        ));
    }
    let tap = File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
        .map_err(|error| failed(&error))?;
    // SAFETY: all zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let header = if vnet_header { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | header) as i16;
    // SAFETY: TUNSETIFF takes a whole ifreq, which `request` is.
    if unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &mut request) } < 0 {
        return Err(failed(&std::io::Error::last_os_error()));
    }
    Ok(tap)
}

/// Copies frames one way until the tap goes away. A frame the other side has no room for is dropped, as a
/// wire's far end would.
fn copy(mut from: &File, mut to: &File, cpu: Option<usize>) -> std::io::Error {
    if let Some(cpu) = cpu {
        let _ = threads::pin(cpu); // `run` has pinned itself before, and failed where that cannot be
    }
    let mut buffer = vec![0u8; LONGEST];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return ErrorKind::UnexpectedEof.into(),
            Ok(length) => match to.write(&buffer[..length]) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::ENOBUFS | libc::EAGAIN | libc::EIO | libc::EINVAL)
                    ) => {}
                Err(error) => return error,
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error,
        }
    }
}

/// Joins the taps until stdin ends.
pub fn run(arguments: &cli::Wire) -> Outcome<()> {
    threads::die_with_parent();
    let netns = Netns::open(arguments.netns.as_deref())?;
    let vnet_header = !arguments.no_vnet_hdr;
    let (a, b) = netns.enter(|| {
        Ok((
            attach(&arguments.a, vnet_header)?,
            attach(&arguments.b, vnet_header)?,
        ))
    })?;
    let (a, b) = (Arc::new(a), Arc::new(b));
    if let Some(cpu) = arguments.cpu {
        threads::pin(cpu).map_err(|error| Failure::io(format!("pinning to CPU {cpu}"), &error))?;
    }
    for (from, to) in [(&a, &b), (&b, &a)] {
        let (from, to, cpu) = (from.clone(), to.clone(), arguments.cpu);
        std::thread::spawn(move || {
            let error = copy(&from, &to, cpu);
            output::emit_failure(Failure::io("copying between the taps", &error));
            std::process::exit(1);
        });
    }
    output::emit(&Event::Wired);
    let mut ignored = [0u8; 256];
    while std::io::stdin().read(&mut ignored).is_ok_and(|length| length > 0) {}
    Ok(())
}
