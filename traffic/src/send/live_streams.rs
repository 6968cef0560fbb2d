// SPDX-License-Identifier: Apache-2.0
//! The description of streams for the XDP program that makes their live frames.

use aya::Ebpf;

use crate::failure::Outcome;
use crate::frame::octets::FCS;
use crate::frame::template::Template;
use crate::send::frame_source::Frames;
use crate::send::outgoing::Outgoing;
use crate::send::pace::{CATCH_UP, Schedule};
use crate::xdp::layout::{
    Address, Frame, LONGEST, ORDER, STEPS, STREAMS, SendStream, SendStretch, SendVariant, VARIANTS,
    machine_sum,
};
use crate::xdp::object::Mapped;

/// The maps that describe the streams to the program.
pub struct LiveStreams {
    pub streams: Mapped<SendStream>,
    templates: Mapped<Frame>,
    order: Mapped<u8>,
    addresses: Mapped<Address>,
}

/// Returns why XDP cannot send these streams; None if it can.
pub fn unfit(streams: &[Outgoing]) -> Option<String> {
    if streams.len() > STREAMS {
        return Some(format!("more than {STREAMS} streams leave from one CPU"));
    }
    streams.iter().find_map(|stream| {
        if stream.frames.longest().len() > LONGEST {
            return Some(format!("frames of more than {} B", LONGEST + FCS));
        }
        let template = match &stream.frames {
            Frames::Test(template) => template,
            Frames::Raw(_) => return None,
            Frames::Sealed(..) => return Some("ESP".into()),
        };
        let parts = template.parts();
        if parts.order.len() > ORDER || parts.variants.len() > VARIANTS {
            Some(format!(
                "a mix of more than {ORDER} frames, or of {VARIANTS} different ones"
            ))
        } else {
            None
        }
    })
}

const NOTHING: SendStream = SendStream {
    planned: 0,
    until_ns: u64::MAX,
    leeway_ns: 0,
    tag_ns: u64::MAX,
    first_sequence: 0,
    step: 0,
    phase: 0,
    address_base: 0,
    template_base: 0,
    flows: 0,
    ports: 0,
    order_length: 0,
    id: 0,
    ipv6: 0,
    dont_fragment: 0,
    raw: 0,
    paced: 0,
    counter: 0,
    counter_at: 0,
    unused: 0,
    stretches: [SendStretch {
        first: 0,
        due_ns: 0,
        due_frac: 0,
        interval_ns: 0,
        interval_frac: 0,
        catch_up_ns: 0,
    }; STEPS],
    variants: [SendVariant {
        l3: 0,
        l4: 0,
        payload: 0,
        src_port: 0,
        tcp: 0,
        unused: [0; 7],
        ip_sum: 0,
        l4_sum: 0,
    }; VARIANTS],
};

/// Returns the number of flows (at least 1) and the number of kinds of frames, of all streams together.
pub fn needs(streams: &[Outgoing]) -> (usize, usize) {
    let mut found = (0, 0);
    for stream in streams {
        match &stream.frames {
            Frames::Test(template) | Frames::Sealed(template, _) => {
                let parts = template.parts();
                found.0 += parts.address_sums.len();
                found.1 += parts.variants.len();
            }
            Frames::Raw(frames) => found.1 += frames.all().len(),
        }
    }
    (found.0.max(1), found.1)
}

impl LiveStreams {
    /// Maps the program's maps into memory.
    pub fn of(object: &Ebpf) -> Outcome<Self> {
        Ok(LiveStreams {
            streams: Mapped::of(object, "streams")?,
            templates: Mapped::of(object, "templates")?,
            order: Mapped::of(object, "order")?,
            addresses: Mapped::of(object, "addresses")?,
        })
    }

    /// Returns whether the maps have room for this number of addresses and of kinds of frames.
    pub fn hold(&self, (addresses, templates): (usize, usize)) -> bool {
        self.addresses.entries() >= addresses && self.templates.entries() >= templates
    }

    /// Describes the streams without their times, which `LiveSender::set_times` adds.
    pub fn describe(&self, streams: &[Outgoing]) {
        let (mut address_base, mut template_base) = (0, 0);
        for (which, stream) in streams.iter().enumerate() {
            let mut described = SendStream {
                planned: stream.schedule.planned().unwrap_or(u64::MAX),
                leeway_ns: stream.schedule.leeway_ns(),
                first_sequence: stream.first_sequence,
                step: 1,
                phase: 0,
                address_base: address_base as u32,
                template_base: template_base as u32,
                paced: u32::from(stream.schedule.is_paced()),
                ..NOTHING
            };
            match &stream.frames {
                // Sealed frames were refused before.
                Frames::Test(template) | Frames::Sealed(template, _) => {
                    self.describe_test(which, template, &mut described);
                    address_base += template.parts().address_sums.len();
                    template_base += template.parts().variants.len();
                }
                Frames::Raw(frames) => {
                    let all = frames.all().iter().zip(frames.checksums()).enumerate();
                    for (number, (frame, checksum)) in all {
                        self.write_template(template_base + number, frame, checksum.unwrap_or(0));
                    }
                    if let Some(counter) = frames.counter() {
                        (described.counter_at, described.counter) = (counter.at as u32, counter.first);
                    }
                    described.raw = frames.all().len() as u32;
                    template_base += frames.all().len();
                }
            }
            self.streams.write(which, described);
        }
    }

    /// Writes a frame; `checksum_at` is the offset of the UDP checksum of noise, or 0.
    fn write_template(&self, place: usize, bytes: &[u8], checksum_at: usize) {
        let mut frame = Frame {
            length: bytes.len() as u32,
            checksum_at: checksum_at as u32,
            bytes: [0; LONGEST],
        };
        frame.bytes[..bytes.len()].copy_from_slice(bytes);
        self.templates.write(place, frame);
    }

    fn describe_test(&self, which: usize, template: &Template, described: &mut SendStream) {
        let parts = template.parts();
        for (place, &variant) in parts.order.iter().enumerate() {
            self.order.write(which * ORDER + place, variant as u8);
        }
        let width = parts.addresses.len() / parts.address_sums.len();
        for (flow, &sum) in parts.address_sums.iter().enumerate() {
            let mut bytes = [0; 32];
            bytes[..width].copy_from_slice(&parts.addresses[flow * width..(flow + 1) * width]);
            let sum = machine_sum(sum);
            self.addresses
                .write(described.address_base as usize + flow, Address { bytes, sum });
        }
        for (number, (to, from)) in described.variants.iter_mut().zip(parts.variants).enumerate() {
            self.write_template(described.template_base as usize + number, &from.bytes, 0);
            *to = SendVariant {
                l3: from.place.l3 as u16,
                l4: from.place.l4 as u16,
                payload: from.place.payload as u16,
                src_port: from.src_port,
                tcp: u8::from(from.place.tcp),
                unused: [0; 7],
                ip_sum: machine_sum(from.ip_sum),
                l4_sum: machine_sum(from.l4_sum),
            };
        }
        described.flows = parts.address_sums.len() as u32;
        described.ports = parts.ports as u32;
        described.order_length = parts.order.len() as u32;
        described.id = parts.stream;
        described.ipv6 = u8::from(parts.ipv6);
        described.dont_fragment = u8::from(parts.dont_fragment);
    }
}

/// Returns the stretches of a schedule for the program, without those in which no frame is due.
pub fn stretches(schedule: &Schedule) -> [SendStretch; STEPS] {
    let fraction = |ns: f64| (ns.fract() * 4_294_967_296.0) as u64;
    let mut found = [SendStretch {
        first: u64::MAX,
        ..NOTHING.stretches[0]
    }; STEPS];
    let all = schedule.stretches();
    let beginnings = all.iter().enumerate().filter(|&(place, stretch)| {
        let end = all
            .get(place + 1)
            .map_or(schedule.planned(), |next| Some(next.first));
        end.is_none_or(|end| stretch.first < end)
    });
    for (to, (_, from)) in found.iter_mut().zip(beginnings) {
        *to = SendStretch {
            first: from.first,
            due_ns: schedule.start_ns() + from.due_ns as u64,
            due_frac: fraction(from.due_ns),
            interval_ns: from.interval_ns as u64,
            interval_frac: fraction(from.interval_ns),
            catch_up_ns: (from.interval_ns / CATCH_UP) as u64,
        };
    }
    found
}
