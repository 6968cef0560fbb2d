// SPDX-License-Identifier: Apache-2.0
//! Address resolution (ARP and Neighbour Discovery) at a port: resolves the MAC address of a gateway, and answers
//! requests for addresses of the tester.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::frame::neighbours::{self, ADVERTISEMENT, ARP, Heard, ICMPV6, IPV6, SOLICITATION};
use crate::frame::octets::Mac;
use crate::port::Port;
use crate::wire::socket::PacketSocket;

const RETRY: Duration = Duration::from_millis(500);
/// Longest time until a responder notices that it is to end.
const WAIT: Duration = Duration::from_millis(100);

/// Opens a socket that receives the messages of address resolution of one IP version and no other frames: test frames
/// must not cost the responder any time.
fn listen(interface: i32, ipv6: bool) -> Outcome<PacketSocket> {
    let socket = PacketSocket::open()?;
    socket.ignore_outgoing()?;
    if ipv6 {
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        // The filter accepts ICMPv6 of type 135 or 136, and nothing else.
        let mut filter = [
            step(0x30, 0, 0, 20),
            step(0x15, 0, 4, u32::from(ICMPV6)),
            step(0x30, 0, 0, 54),
            step(0x15, 1, 0, u32::from(SOLICITATION)),
            step(0x15, 0, 1, u32::from(ADVERTISEMENT)),
            step(0x06, 0, 0, 0x4_0000),
            step(0x06, 0, 0, 0),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        socket.set(
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program,
            "filter for neighbour discovery",
        )?;
        socket.membership(interface, libc::PACKET_MR_ALLMULTI)?;
    }
    socket.bind(interface, if ipv6 { IPV6 } else { ARP })?;
    Ok(socket)
}

/// Resolves the MAC address of `gateway`. Fails if it does not answer in time; the message lists what arrived instead.
pub fn resolve(
    port: &Port,
    address: IpAddr,
    gateway: IpAddr,
    tags: &[u8],
    timeout: Duration,
) -> Outcome<Mac> {
    let ask = neighbours::ask(port.mac, address, gateway, tags)?;
    let index = port.index;
    let socket = port.netns.enter(|| listen(index, gateway.is_ipv6()))?;
    let end = Instant::now() + timeout;
    let mut next = Instant::now();
    let mut others = Heard::default();
    let mut buffer = [0u8; 2048];
    loop {
        let now = Instant::now();
        if now >= end {
            break;
        }
        if now >= next {
            socket.send(&ask)?;
            next = now + RETRY;
        }
        socket.wait(
            next.min(end)
                .saturating_duration_since(now)
                .max(Duration::from_millis(1)),
        )?;
        while let Some(length) = socket.receive(&mut buffer) {
            let Some(heard) = neighbours::read(&buffer[..length]) else {
                continue;
            };
            if !heard.question && heard.target == gateway {
                return Ok(heard.mac);
            }
            others.note(&heard);
        }
    }
    Err(others.failure(&port.told, address, gateway, timeout.as_secs_f64()))
}

/// A thread that answers requests for one address of the tester. It ends when this value is dropped.
pub struct Responder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pub address: IpAddr,
}

impl Responder {
    /// Starts to answer requests for `address`; the answers get these VLAN tags.
    pub fn start(port: &Port, address: IpAddr, tags: Vec<u8>) -> Outcome<Self> {
        let index = port.index;
        let socket = port.netns.enter(|| listen(index, address.is_ipv6()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let mac = port.mac;
        let stopping = stop.clone();
        let thread = std::thread::Builder::new()
            .name(format!("neigh-{}", port.told.name))
            .spawn(move || {
                let mut buffer = [0u8; 2048];
                while !stopping.load(Ordering::Relaxed) {
                    if socket.wait(WAIT).is_err() {
                        std::thread::sleep(WAIT); // the interface may come back
                        continue;
                    }
                    while let Some(length) = socket.receive(&mut buffer) {
                        let asked = neighbours::read(&buffer[..length])
                            .filter(|heard| heard.question && heard.target == address);
                        if let Some(frame) = asked.and_then(|asked| neighbours::answer(mac, &asked)) {
                            // An error is ignored: a gateway that gets no answer asks again.
                            let _ = socket.send(&neighbours::tagged(frame, &tags));
                        }
                    }
                }
            })
            .map_err(|error| Failure::io("starting the ARP and ND responder", &error))?;
        Ok(Responder {
            stop,
            thread: Some(thread),
            address,
        })
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
