// SPDX-License-Identifier: Apache-2.0
//! The departures of live frames from a port: which conclusions its driver's counters allow.

use crate::host::netlink::LinkState;
use crate::protocol::OpenedPort;

/// Largest number of frames that a driver holds in its queue after they left. It counts them when later frames leave.
pub const HELD: u64 = 4096;

/// The departures from a port, as its counters show them, beside what the generator knows.
pub struct Departed {
    /// Number of frames that the driver counted as sent. It may include frames of others.
    left: u64,
    /// Number of frames that the ring behind the port refused.
    pub refused: u64,
    /// Number of frames that the generator handed over.
    sent: u64,
    /// Number of these frames that arrived at a port of the tester.
    accounted: u64,
}

impl Departed {
    /// Compares the counters before a trial with those of now.
    pub fn between(before: &LinkState, now: &LinkState, sent: u64, accounted: u64) -> Self {
        Departed {
            left: now.sent.saturating_sub(before.sent),
            refused: now.dropped.saturating_sub(before.dropped),
            sent,
            accounted,
        }
    }

    /// Returns the number of sent frames that were not refused.
    fn taken(&self) -> u64 {
        self.sent.saturating_sub(self.refused)
    }

    /// Returns the number of sent frames that the driver did not count.
    fn uncounted_frames(&self) -> u64 {
        self.taken().saturating_sub(self.left)
    }

    /// Returns the number of frames that did not arrive.
    fn missing(&self) -> u64 {
        self.sent.saturating_sub(self.accounted)
    }

    /// Returns whether the driver is known to count live frames, given what earlier trials showed. Few arrivals show
    /// nothing: the driver may hold as many frames, and others may have sent as many.
    pub fn judge(&self, before: Option<bool>) -> Option<bool> {
        let booked = self.left + self.refused;
        let arrivals_counted = self.accounted > HELD && 2 * self.left >= self.accounted;
        if 2 * booked < self.accounted && booked + HELD < self.accounted {
            return Some(false);
        }
        before.or(arrivals_counted.then_some(true))
    }

    /// Returns whether the driver counted most of the frames that were not refused, which a few frames of others cannot
    /// make up.
    pub fn mostly_counted(&self) -> bool {
        2 * self.left >= self.taken()
    }

    /// Returns whether later counters would show nothing more. If every frame arrived, frames that the driver holds
    /// do not matter. A longer lag does, because the next trial would find these frames in its own counters.
    pub fn suffices(&self, counts: Option<bool>) -> bool {
        let learned = self.judge(counts).is_some() || self.sent <= HELD;
        let current = self.uncounted_frames() <= HELD;
        counts == Some(false) || self.uncounted_frames() == 0 || (self.missing() == 0 && current && learned)
    }

    /// Returns how many frames certainly never left, if the driver holds at most `held` frames. A frame that arrived
    /// has left, whatever the counters show. A held frame has left, too, and may be one that the DUT lost.
    pub fn vanished(&self, held: u64) -> u64 {
        self.uncounted_frames().saturating_sub(held).min(self.missing())
    }

    /// Returns a warning if frames are missing of which it is not known whether they left.
    pub fn uncounted(&self, port: &OpenedPort, believed: bool, vanished: u64) -> Option<String> {
        let (last, are, most) = match believed {
            true => ("the last ", "may not be", format!("up to {HELD} ")),
            false => ("", "are not", String::new()),
        };
        let unknown = self.missing().min(self.uncounted_frames()) > vanished;
        (self.missing() > 0 && (unknown || !believed)).then(|| {
            format!(
                "{last}departures from port {} {are} counted by its driver {}: {most}frames that its queue refuses count as lost (\"tx\": \"af_packet\" knows them)",
                port.name, port.driver
            )
        })
    }
}
