// SPDX-License-Identifier: Apache-2.0
//! The fates of frames on links that err: drawn from a seed, alike on links in virtual time and on real ones.

/// Bytes of the FCS, which errors can hit as well.
const FCS: usize = 4;

/// Errors on the way once a link has a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Errors {
    /// Share of frames that never come, of 2^64.
    pub lose: u64,
    /// Share of bits that are flipped, of 2^64. A frame with one comes with a wrong FCS.
    pub flip: u64,
    /// Share of frames that come later, of 2^32, by so long; perhaps behind others.
    pub late: u32,
    pub late_ns: u32,
}

/// The end that a frame comes to on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Lost,
    Comes { damaged: bool, late_ns: u64 },
}

impl Fate {
    /// The fate of all frames on a link that has no seed.
    pub const NONE: Fate = Fate::Comes {
        damaged: false,
        late_ns: 0,
    };
}

/// Numbers of 64 bits that are each as likely 0 as 1 (splitmix64), the same in each run.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Begins with a link's seed; each of its two ends draws numbers of its own.
    pub fn of_end(seed: u64, end: usize) -> Self {
        Chance(seed.wrapping_add(end as u64))
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns what becomes of the next frame, of so many bytes without FCS (padded). Each draws three numbers, whatever
    /// can go wrong, so that one kind of error does not change where others are.
    pub fn fate(&mut self, errors: &Errors, length: usize) -> Fate {
        let [lose, damage, late] = [(); 3].map(|()| self.draw());
        if lose < errors.lose {
            return Fate::Lost;
        }
        let is_late = late >> 32 < u64::from(errors.late);
        Fate::Comes {
            damaged: damage > intact(errors.flip, 8 * (length + FCS) as u64),
            late_ns: if is_late { u64::from(errors.late_ns) } else { 0 },
        }
    }
}

/// Returns a seed for each link, far from that of any other; its two ends draw from it and the number after it.
pub fn seed_of(seed: u64, link: u64) -> u64 {
    let mixed = (seed ^ link.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed ^ (mixed >> 32)) | 1 // 0 would be: nothing goes wrong
}

fn share_of(share: u64, of: u64) -> u64 {
    ((u128::from(share) * u128::from(of)) >> 64) as u64
}

/// Returns how likely it is, as a share of 2^64, that none of so many bits is flipped. In whole numbers: QEMU's end of a
/// link comes to the same.
fn intact(flip: u64, mut bits: u64) -> u64 {
    let (mut share, mut power) = (u64::MAX, flip.wrapping_neg());
    if flip == 0 {
        return share;
    }
    while bits > 0 {
        if bits & 1 == 1 {
            share = share_of(share, power);
        }
        power = share_of(power, power);
        bits >>= 1;
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A share of 2^64.
    fn share(of_one: f64) -> u64 {
        (of_one * 2f64.powi(64)) as u64
    }

    #[test]
    fn bits_that_are_flipped_add_up() {
        for (flip, bits) in [(1e-9, 12_000), (1e-3, 512), (0.5, 1), (1e-12, 1)] {
            let exact = (1.0f64 - flip).powi(bits);
            let found = intact(share(flip), bits as u64) as f64 / 2f64.powi(64);
            assert!((found - exact).abs() < 1e-12, "{flip} {bits}: {found} {exact}");
        }
    }

    /// The fates that QEMU's end of a link draws of the same seed (tests/unit/boards/test_link_errors.py has the same
    /// line): frames are lost (0), come (1) or are damaged (2), and 4 more if they are late.
    #[test]
    fn fates_are_those_of_the_other_program() {
        let errors = Errors {
            lose: 1 << 62,
            flip: 1 << 51,
            late: 1 << 30,
            late_ns: 5_000,
        };
        let mut chance = Chance::of_end(7, 0);
        let fates: String = (0..64)
            .map(|_| match chance.fate(&errors, 508) {
                Fate::Lost => '0',
                Fate::Comes { damaged, late_ns } => {
                    char::from(b'1' + u8::from(damaged) + if late_ns > 0 { 4 } else { 0 })
                }
            })
            .collect();
        assert_eq!(
            fates,
            "1551222062110051211111251122021206022021662220101202011211052120"
        );
    }
}
