// SPDX-License-Identifier: Apache-2.0
//! An end of a link in virtual time: frames out and in, and how far each end may run (harness/emulator/LINK.md).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::fates::{Chance, Fate};
use crate::frame::octets::SHORTEST;
use crate::virtual_time::memory::{ABSENT, ATTACHED, COUNTS, End, LEFT, Memory};

/// Bytes that a frame takes on the wire beside itself: preamble and start of frame (8), and FCS (4).
const AROUND: usize = 12;
/// Bytes between two frames.
const GAP: usize = 12;

const RECORD: usize = 16;
const FRAME: u32 = 0;
const CONSOLE: u32 = 1;
/// A frame with a wrong FCS: any port drops it.
const DAMAGED: u32 = 2;

/// Number of looks within which the other end mostly answers, if it has another CPU.
const SPINS: u32 = 500;
/// Time after which it shows that the other end died, or that the caller wants to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Time after which an end that does not move never will: COMING while it waits to be started, MOVING once it runs,
/// when the host may give it little or nothing for a while. The time slept counts, not the clock's: while all are
/// stopped nobody waits.
const COMING: Duration = Duration::from_secs(60);
const MOVING: Duration = Duration::from_secs(600);
const NAP: Duration = Duration::from_millis(1);

/// A frame, or console text, that came over a link.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// Time at which its last bit was here.
    pub at_ns: u64,
    pub bytes: Vec<u8>,
}

/// The reason why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited {
    Reached,
    Stopped,
}

/// The end of a link.
pub struct Link {
    path: PathBuf,
    memory: Memory,
    end: usize,
    head: u64,
    tail: u64,
    /// Time at which the wire is free for our next frame.
    free_ns: u64,
    chance: Chance,
    /// Number of looks for the other end before it sleeps.
    spins: u32,
    pub frames: VecDeque<Arrived>,
    /// Text that the guest at the other end has printed.
    pub printed: VecDeque<Arrived>,
}

impl Link {
    /// Takes one end of the link; the other may come later.
    pub fn attach(path: &Path, end: usize) -> Outcome<Self> {
        let memory = Memory::open(path)?;
        Self::take(path, memory, end)
    }

    fn take(path: &Path, memory: Memory, end: usize) -> Outcome<Self> {
        let mine = memory.end(end);
        if !memory.take(end) {
            let pid = mine.pid.load(Ordering::Relaxed);
            return Err(Failure::new(
                format!("link {}: process {pid} has end {end}", path.display()),
                "give each process an end and each pair of processes a link of its own",
            ));
        }
        if mine.state.load(Ordering::Acquire) != ABSENT {
            return Err(Failure::new(
                format!("link {}: end {end} was used before", path.display()),
                "virtual time does not begin again: make a new link",
            ));
        }
        mine.pid.store(std::process::id(), Ordering::Relaxed);
        mine.state.store(ATTACHED, Ordering::Release);
        let chance = Chance::of_end(memory.header.seed, end);
        Ok(Link {
            path: path.into(),
            memory,
            end,
            chance,
            spins: spins(),
            head: 0,
            tail: 0,
            free_ns: 0,
            frames: VecDeque::new(),
            printed: VecDeque::new(),
        })
    }

    /// Makes the copy of this link that a branch uses, with all that is on its way. What goes wrong in it is the seed's.
    pub fn copy(&self, to: &Path, seed: u64) -> Outcome<Self> {
        let mut copied = Self::take(to, self.memory.copy(&self.path, to, seed)?, self.end)?;
        (copied.head, copied.tail, copied.free_ns) = (self.head, self.tail, self.free_ns);
        copied.frames.clone_from(&self.frames);
        copied.printed.clone_from(&self.printed);
        Ok(copied)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Orders the guest at the other end to do something as soon as it stands and is rung for.
    pub fn order(&self, number: u32, branch: &str) -> Outcome<()> {
        self.memory.name_branch(branch)?;
        self.mine().order.store(number, Ordering::Release);
        Ok(())
    }

    /// Waits until the guest at the other end stands, as it was ordered to tell.
    pub fn stands(&self, number: u32) -> Outcome<()> {
        let mut waited = Duration::ZERO;
        while self.theirs().order.load(Ordering::Acquire) != number {
            self.alive(waited)?;
            std::thread::sleep(NAP);
            waited += NAP;
        }
        Ok(())
    }

    /// Returns whether there is somebody at the other end.
    pub fn met(&self) -> bool {
        self.theirs().state.load(Ordering::Acquire) == ATTACHED
    }

    /// Fails if whoever was at the other end is gone.
    pub fn lives(&self) -> Outcome<()> {
        self.alive(Duration::ZERO)
    }

    pub fn latency_ns(&self) -> u64 {
        self.memory.header.latency_ns
    }

    pub fn step_ns(&self) -> u64 {
        self.memory.header.step_ns
    }

    pub fn mbps(&self) -> u32 {
        8_000 / self.memory.header.ns_per_byte
    }

    /// Returns how long a frame of so many bytes without FCS keeps the wire busy, with preamble, FCS and gap.
    pub fn busy_ns(&self, length: usize) -> u64 {
        self.wire_ns(length) + GAP as u64 * u64::from(self.memory.header.ns_per_byte)
    }

    fn wire_ns(&self, length: usize) -> u64 {
        (length.max(SHORTEST) + AROUND) as u64 * u64::from(self.memory.header.ns_per_byte)
    }

    /// Returns when the next frame may leave.
    pub fn free_ns(&self) -> u64 {
        self.free_ns
    }

    /// Sends a frame that is ready at `ready_ns`; returns when its first bit leaves.
    pub fn send(&mut self, ready_ns: u64, bytes: &[u8]) -> Outcome<u64> {
        let leaves_ns = self.free_ns.max(ready_ns);
        self.free_ns = leaves_ns + self.busy_ns(bytes.len());
        let at_ns = leaves_ns + self.wire_ns(bytes.len()) + self.latency_ns();
        match self.fate(bytes.len()) {
            Fate::Lost => {}
            Fate::Comes { damaged, late_ns } => {
                self.put(at_ns + late_ns, if damaged { DAMAGED } else { FRAME }, bytes)?
            }
        }
        Ok(leaves_ns)
    }

    /// Returns what becomes of the next frame, and counts what goes wrong.
    fn fate(&mut self, length: usize) -> Fate {
        let header = self.memory.header;
        if header.seed == 0 {
            return Fate::NONE;
        }
        let fate = self.chance.fate(&header.errors, length.max(SHORTEST));
        let mine = self.mine();
        let add = |count: &AtomicU64, happened: bool| count.fetch_add(u64::from(happened), Ordering::Relaxed);
        match fate {
            Fate::Lost => _ = add(&mine.lost, true),
            Fate::Comes { damaged, late_ns } => {
                add(&mine.damaged, damaged);
                add(&mine.late, late_ns > 0);
            }
        }
        fate
    }

    /// Returns what the gateway at the other end counted, and the frames that both ends lost, damaged and delayed.
    pub fn counts(&self) -> ([u64; COUNTS], [u64; 3]) {
        (self.memory.counts(1 - self.end), self.memory.errors())
    }

    /// Types into the console of the guest at the other end.
    pub fn type_in(&mut self, now_ns: u64, bytes: &[u8]) -> Outcome<()> {
        self.put(now_ns + self.latency_ns(), CONSOLE, bytes)
    }

    fn put(&mut self, at_ns: u64, kind: u32, bytes: &[u8]) -> Outcome<()> {
        let length = RECORD + bytes.len().next_multiple_of(8);
        let mut waited = Duration::ZERO;
        while self.head + length as u64 - self.theirs().tail.load(Ordering::Acquire)
            > u64::from(self.memory.header.ring_bytes)
        {
            self.alive(waited)?;
            std::thread::sleep(NAP);
            waited += NAP;
        }
        let mut record = [0u8; RECORD];
        record[..8].copy_from_slice(&at_ns.to_ne_bytes());
        record[8..12].copy_from_slice(&(bytes.len() as u32).to_ne_bytes());
        record[12..].copy_from_slice(&kind.to_ne_bytes());
        self.memory.write(self.end, self.head, &record);
        self.memory.write(self.end, self.head + RECORD as u64, bytes);
        self.head += length as u64;
        self.mine().head.store(self.head, Ordering::Release);
        Ok(())
    }

    fn mine(&self) -> &End {
        self.memory.end(self.end)
    }

    fn theirs(&self) -> &End {
        self.memory.end(1 - self.end)
    }

    /// Promises that everything still sent leaves at `until_ns` or later. `wake` must follow.
    pub fn promise(&self, until_ns: u64) {
        self.mine().until_ns.store(until_ns, Ordering::Release);
    }

    /// Wakes the other end if it waits for what was promised.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        let wants_ns = self.theirs().wants_ns.load(Ordering::Relaxed);
        if wants_ns != 0 && self.mine().until_ns.load(Ordering::Relaxed) >= wants_ns {
            self.ring();
        }
    }

    /// Wakes the other end.
    pub fn ring(&self) {
        let theirs = self.theirs();
        theirs.wants_ns.store(0, Ordering::Relaxed);
        theirs.bell.fetch_add(1, Ordering::Release);
        // SAFETY: `bell` is an aligned word of the mapping, which lives as long as `self`; FUTEX_WAKE does not write it.
        unsafe { libc::syscall(libc::SYS_futex, theirs.bell.as_ptr(), libc::FUTEX_WAKE, 1) };
    }

    /// Returns the time up to which the other end has sent everything.
    pub fn peer_until_ns(&self) -> u64 {
        self.theirs().until_ns.load(Ordering::Acquire)
    }

    /// Takes everything that has arrived from the ring.
    pub fn drain(&mut self) {
        let head = self.theirs().head.load(Ordering::Acquire);
        while self.tail < head {
            let mut record = [0u8; RECORD];
            self.memory.read(1 - self.end, self.tail, &mut record);
            let word =
                |at: usize| u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
            let length = word(8) as usize;
            let mut bytes = vec![0u8; length];
            self.memory
                .read(1 - self.end, self.tail + RECORD as u64, &mut bytes);
            let at_ns = u64::from(word(4)) << 32 | u64::from(word(0));
            let arrived = Arrived { at_ns, bytes };
            match word(12) {
                CONSOLE => self.printed.push_back(arrived),
                DAMAGED => {}
                _ => queue(&mut self.frames, arrived),
            }
            self.tail += (RECORD + length.next_multiple_of(8)) as u64;
        }
        self.mine().tail.store(self.tail, Ordering::Release);
    }

    /// Waits until the other end has sent everything up to `until_ns`, and takes it. `stop` is polled.
    pub fn wait(&mut self, until_ns: u64, stop: &mut dyn FnMut() -> bool) -> Outcome<Waited> {
        let mut spins = 0;
        let (mut waited, mut seen) = (Duration::ZERO, self.peer_until_ns());
        while self.peer_until_ns() < until_ns {
            if spins < self.spins {
                spins += 1;
                std::hint::spin_loop();
                continue;
            }
            self.sleep(until_ns);
            self.drain(); // a full ring would keep the other end from moving
            if self.peer_until_ns() >= until_ns {
                break;
            }
            waited += LOOK;
            let now = self.peer_until_ns();
            if now != seen {
                (waited, seen) = (Duration::ZERO, now);
            }
            let alive = self.alive(waited);
            if self.peer_until_ns() >= until_ns {
                break; // whatever became of it since
            }
            alive?;
            if stop() {
                return Ok(Waited::Stopped);
            }
        }
        self.drain();
        Ok(Waited::Reached)
    }

    fn sleep(&self, until_ns: u64) {
        let mine = self.mine();
        let heard = mine.bell.load(Ordering::Acquire);
        mine.wants_ns.store(until_ns, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.peer_until_ns() < until_ns {
            wait_for_bell(&mine.bell, heard);
        }
        mine.wants_ns.store(0, Ordering::Relaxed);
    }

    /// Fails if there is no use in waiting any longer for the other end, which has not moved for so long.
    fn alive(&self, waited: Duration) -> Outcome<()> {
        let theirs = self.theirs();
        let (path, other) = (self.path.display(), 1 - self.end);
        let at_s = self.peer_until_ns() as f64 / 1e9;
        let pid = theirs.pid.load(Ordering::Relaxed);
        let (told, hint) = match theirs.state.load(Ordering::Acquire) {
            LEFT => (
                format!("process {pid} left it at virtual time {at_s:.6} s"),
                "start it again with a new link",
            ),
            ATTACHED if !self.memory.taken(other) => (
                format!("process {pid} at its other end died at virtual time {at_s:.6} s"),
                "its log and its guest's console say why",
            ),
            ABSENT if waited > COMING => (
                format!("nobody came to end {other} within {} s", COMING.as_secs()),
                "start the gateway with this link",
            ),
            _ if waited > MOVING => (
                format!(
                    "process {pid} at its other end has stood at virtual time {at_s:.6} s for {} s",
                    MOVING.as_secs()
                ),
                "it hangs, or waits for a link of its own whose other end is not there",
            ),
            _ => return Ok(()),
        };
        Err(Failure::new(format!("link {path}: {told}"), hint))
    }
}

/// Returns how often an end looks: on its only CPU a process that looks keeps the other end from moving.
fn spins() -> u32 {
    match std::thread::available_parallelism() {
        Ok(cpus) if cpus.get() == 1 => 0,
        _ => SPINS,
    }
}

/// Puts a frame where its arrival is in order: a link may let one come behind others that were sent later.
fn queue(frames: &mut VecDeque<Arrived>, arrived: Arrived) {
    let behind = frames
        .iter()
        .rev()
        .take_while(|other| other.at_ns > arrived.at_ns)
        .count();
    frames.insert(frames.len() - behind, arrived);
}

/// Sleeps until the bell is rung, for LOOK at most.
fn wait_for_bell(bell: &AtomicU32, heard: u32) {
    let patience = libc::timespec {
        tv_sec: 0,
        tv_nsec: LOOK.as_nanos() as libc::c_long,
    };
    // SAFETY: `bell` is an aligned word of a live mapping, and `patience` lives through the call. No result is needed:
    // callers look again, why ever it returned.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            bell.as_ptr(),
            libc::FUTEX_WAIT,
            heard,
            &raw const patience,
        )
    };
}

impl Drop for Link {
    fn drop(&mut self) {
        self.mine().state.store(LEFT, Ordering::Release);
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fates::Errors;
    use crate::virtual_time::memory;

    /// Sends frames over a copy of a link on which things go wrong; returns what arrived, and what was counted.
    fn sent(name: &str, errors: Errors, seed: u64, frames: usize, length: usize) -> (Vec<u64>, [u64; 3]) {
        let path = std::env::temp_dir().join(format!("esplink-{}-{name}", std::process::id()));
        let copy = path.with_extension("1");
        memory::create(&path, 50_000, 25_000, 8, errors).unwrap();
        let trunk = Link::attach(&path, 0).unwrap();
        let mut from = trunk.copy(&copy, seed).unwrap();
        let mut to = Link::attach(&copy, 1).unwrap();
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(copy).unwrap();
        let mut came = Vec::new();
        for number in 0..frames as u64 {
            let mut bytes = vec![0; length];
            bytes[..8].copy_from_slice(&number.to_ne_bytes());
            from.send(0, &bytes).unwrap();
            to.drain();
            // Nothing that is sent later can come before this.
            let by_ns = from.free_ns();
            while to.frames.front().is_some_and(|frame| frame.at_ns <= by_ns) {
                let frame = to.frames.pop_front().unwrap();
                came.push(u64::from_ne_bytes(frame.bytes[..8].try_into().unwrap()));
            }
        }
        came.extend(
            to.frames
                .iter()
                .map(|frame| u64::from_ne_bytes(frame.bytes[..8].try_into().unwrap())),
        );
        let counted = [&from.mine().lost, &from.mine().damaged, &from.mine().late];
        (came, counted.map(|count| count.load(Ordering::Relaxed)))
    }

    /// A share of 2^64.
    fn share(of_one: f64) -> u64 {
        (of_one * 2f64.powi(64)) as u64
    }

    /// Counts are as asked for within four standard deviations; what is lost or damaged does not come, all else in order.
    #[test]
    fn frames_are_lost_and_damaged_as_often_as_asked() {
        let errors = Errors {
            lose: share(0.01),
            flip: share(1e-5),
            ..Errors::default()
        };
        let (frames, length) = (20_000, 996);
        let (came, [lost, damaged, late]) = sent("errs", errors, 7, frames, length);
        assert_eq!((came.len() as u64, late), (frames as u64 - lost - damaged, 0));
        assert!(came.is_sorted());
        let bad = 1.0 - (1.0 - 1e-5f64).powi(8_000);
        for (count, rate) in [(lost, 0.01), (damaged, 0.99 * bad)] {
            let (mean, spread) = (frames as f64 * rate, (frames as f64 * rate * (1.0 - rate)).sqrt());
            assert!(
                (count as f64 - mean).abs() < 4.0 * spread,
                "{count} of {frames}, {mean}"
            );
        }
    }

    /// The same seed makes the same errors, another one others, and none does nothing, whatever the link is told.
    #[test]
    fn errors_are_the_seeds() {
        let errors = Errors {
            lose: share(0.1),
            flip: share(1e-6),
            late: u32::MAX / 10,
            late_ns: 5_000,
        };
        let one = sent("seed-1", errors, 1, 2_000, 60);
        assert_eq!(one, sent("seed-1-again", errors, 1, 2_000, 60));
        assert_ne!(one, sent("seed-2", errors, 2, 2_000, 60));
        assert_eq!(
            sent("seed-0", errors, 0, 2_000, 60),
            ((0..2_000).collect(), [0, 0, 0])
        );
    }

    /// A late frame comes behind as many others as leave meanwhile; which are lost does not depend on it.
    #[test]
    fn late_frames_come_behind_others() {
        let lose = share(0.01);
        let errors = Errors {
            lose,
            late: u32::MAX / 50,
            late_ns: 10 * 672,
            ..Errors::default()
        };
        let (came, [lost, _, late]) = sent("late", errors, 3, 5_000, 60);
        let overtaken = came.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
        assert!(
            late > 50 && overtaken > late * 8 / 10 && overtaken <= late,
            "{late}, {overtaken}"
        );
        let (in_order, [also_lost, ..]) = sent(
            "not-late",
            Errors {
                lose,
                ..Errors::default()
            },
            3,
            5_000,
            60,
        );
        let mut sorted = came.clone();
        sorted.sort_unstable();
        assert_eq!((sorted, lost), (in_order, also_lost));
        let furthest = came
            .iter()
            .enumerate()
            .map(|(place, number)| place as i64 - *number as i64)
            .max();
        assert!(furthest.unwrap() <= 10);
    }

    fn ends(name: &str) -> (Link, Link) {
        let path = std::env::temp_dir().join(format!("esplink-{}-{name}", std::process::id()));
        memory::create(&path, 50_000, 25_000, 8, Errors::default()).unwrap();
        let ends = (Link::attach(&path, 0).unwrap(), Link::attach(&path, 1).unwrap());
        std::fs::remove_file(path).unwrap(); // both ends have it open
        ends
    }

    /// Two frames ready at once leave one after the other, and arrive with their last bit.
    #[test]
    fn the_wire_takes_its_time() {
        let (mut from, mut to) = ends("wire");
        assert_eq!(from.send(1_000, &[1; 60]).unwrap(), 1_000);
        assert_eq!(from.send(1_000, &[2; 20]).unwrap(), 1_672);
        assert_eq!(from.send(9_000, &[3; 1514]).unwrap(), 9_000);
        assert_eq!(from.free_ns(), 9_000 + 1_538 * 8);
        from.type_in(2_000, b"hello").unwrap();
        to.drain();
        let came: Vec<_> = to
            .frames
            .iter()
            .map(|frame| (frame.at_ns, frame.bytes.len()))
            .collect();
        assert_eq!(
            came,
            [(51_576, 60), (52_248, 20), (9_000 + 1_526 * 8 + 50_000, 1514)]
        );
        assert_eq!(to.printed[0].at_ns, 52_000);
        assert_eq!(to.printed[0].bytes, b"hello");
    }

    /// Records that wrap around the end of the ring, anywhere in them, come out as they went in.
    #[test]
    fn the_ring_wraps() {
        let (mut from, mut to) = ends("wrap");
        for number in 0..9_000usize {
            let bytes: Vec<u8> = (0..1_000 + number % 400).map(|i| (i + number) as u8).collect();
            from.send(0, &bytes).unwrap();
            to.drain();
            assert_eq!(to.frames.pop_front().unwrap().bytes, bytes);
        }
    }

    /// A wait ends with the promise it is for, and tells an end in order from one that never moves.
    #[test]
    fn a_wait_ends_with_the_promise() {
        let (mut from, mut to) = ends("wait");
        let waiting = std::thread::spawn(move || {
            assert_eq!(to.wait(2_000, &mut || false).unwrap(), Waited::Reached);
            assert_eq!(to.frames.len(), 1);
            let told = to.wait(3_000, &mut || false).unwrap_err();
            assert!(
                told.message.contains("left it at virtual time 0.000002 s"),
                "{}",
                told.message
            );
        });
        from.promise(1_000);
        from.wake();
        from.send(1_500, &[0; 60]).unwrap();
        from.promise(2_000);
        from.wake();
        drop(from);
        waiting.join().unwrap();
    }
}
