// SPDX-License-Identifier: Apache-2.0
//! The ends of a wire: tap interfaces, and sockets that keep the bounds of frames.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};

use crate::failure::{Failure, Outcome};

/// Length of the virtio-net header that a tap lays before each frame.
pub const HEADER: usize = 10;
/// Length of the longest frame that a tap hands over, its virtio-net header included.
pub const LONGEST: usize = 65_536 + 64;

/// One end of a wire.
pub struct End {
    file: File,
    /// Bytes before each frame.
    header: usize,
}

impl End {
    /// Attaches to a tap by its name, or takes a socket of type SOCK_SEQPACKET that this process was given: `fd:7`.
    pub fn open(name: &str, vnet_header: bool) -> Outcome<Self> {
        let Some(number) = name.strip_prefix("fd:") else {
            return Ok(End {
                file: attach(name, vnet_header)?,
                header: if vnet_header { HEADER } else { 0 },
            });
        };
        let hint = "give the number of an open socket of type SOCK_SEQPACKET";
        let fd: i32 = number
            .parse()
            .map_err(|_| Failure::new(format!("'{name}' names no file descriptor"), hint))?;
        // SAFETY: fcntl only looks whether the number is one of an open file.
        if fd < 3 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            return Err(Failure::new(format!("{fd} is no open file descriptor"), hint));
        }
        // SAFETY: the caller gave it to this process for this end, and nothing else here uses it.
        let file = unsafe { File::from_raw_fd(fd) };
        Ok(End { file, header: 0 })
    }

    /// Lets reads and writes fail with EAGAIN where they would wait.
    pub fn without_waiting(&self) -> Outcome<()> {
        let yes: libc::c_int = 1;
        // SAFETY: FIONBIO reads the one int that it is given.
        let done = unsafe { libc::ioctl(self.file.as_raw_fd(), libc::FIONBIO, &raw const yes) };
        if done < 0 {
            return Err(Failure::last_os("FIONBIO"));
        }
        Ok(())
    }

    /// Takes the next frame: it begins at HEADER of the buffer. Returns its length; an end that is gone has none left.
    pub fn take(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let taken = (&self.file).read(&mut buffer[HEADER - self.header..])?;
        if self.header == 0 {
            buffer[..HEADER].fill(0); // of a frame that asks nothing of the next tap
        }
        taken
            .checked_sub(self.header)
            .filter(|length| *length > 0)
            .ok_or(std::io::ErrorKind::UnexpectedEof.into())
    }

    /// Gives a frame that begins at HEADER of the buffer. One that the other side refuses is dropped, as a wire's far
    /// end would.
    pub fn give(&self, buffer: &[u8]) -> std::io::Result<()> {
        match (&self.file).write(&buffer[HEADER - self.header..]) {
            Err(error)
                if !matches!(
                    error.raw_os_error(),
                    Some(libc::ENOBUFS | libc::EIO | libc::EINVAL)
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Waits until a frame can be taken or given (POLLIN or POLLOUT), or for so long (ns); None: for ever.
    pub fn wait(&self, events: i16, for_ns: Option<u64>) {
        let mut waits = libc::pollfd {
            fd: self.file.as_raw_fd(),
            events,
            revents: 0,
        };
        let patience = for_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let patience = patience.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `waits` and `patience` live through the call. Callers look again, why ever it returned.
        unsafe { libc::ppoll(&raw mut waits, 1, patience, std::ptr::null()) };
    }
}

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
