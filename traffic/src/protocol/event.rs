// SPDX-License-Identifier: Apache-2.0
//! The events that answer the controller's commands.

use serde::Serialize;

use crate::protocol::trial_result::{LinkErrors, TrialResult};

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Hello {
        version: &'static str,
        protocol: u32,
        pid: u32,
    },
    Opened {
        ports: Vec<OpenedPort>,
    },
    Closed,
    Resolved {
        port: String,
        gateway: std::net::IpAddr,
        mac: String,
    },
    Branched {
        /// Virtual time.
        now_ns: u64,
    },
    /// Tells all lines that the guest printed since the last look, the awaited one last.
    Console {
        port: String,
        /// Virtual time.
        now_ns: u64,
        lines: Vec<String>,
    },
    /// Tells that a trial stands still at the next of its moments.
    Moment {
        id: String,
        /// Virtual time.
        now_ns: u64,
    },
    Progress {
        id: String,
        elapsed_s: f64,
        tx_frames: u64,
        rx_frames: u64,
        /// False once all has been sent, and late frames are waited for. In real time, one event tells when sending is
        /// about to begin, and one when it is over.
        sending: bool,
    },
    /// Tells how many packets were sealed before a trial, or opened after it.
    Crypto {
        id: String,
        done: u64,
        of: u64,
    },
    Trial(Box<TrialResult>),
    Wired,
    /// Tells what a wire did to frames since it began.
    Erred(LinkErrors),
    Error {
        message: String,
        hint: String,
    },
}

#[derive(Debug, Clone, Serialize)]
pub struct OpenedPort {
    pub name: String,
    pub interface: String,
    pub driver: String,
    pub mac: String,
    pub mtu: u32,
    pub carrier: bool,
    pub speed_mbps: Option<u32>,
    pub sender: String,
    pub receiver: String,
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::trial_result::*;
    use std::collections::BTreeMap;

    fn latency() -> Latency {
        Latency {
            min: 1.0,
            mean: 2.0,
            p50: 2.0,
            p90: 3.0,
            p99: 4.0,
            p999: 5.0,
            max: 6.0,
            hdr: "HISTFAAAAA".into(),
        }
    }

    fn slice() -> Slice {
        Slice {
            t_s: 0.0,
            rx_frames: 90,
            min_us: Some(1.0),
            mean_us: Some(2.0),
        }
    }

    fn step() -> StepResult {
        StepResult {
            at_ns: 1_000,
            rate_fps: 100.0,
            intended_frames: 100,
            tx_frames: 99,
            lost: Some(8),
        }
    }

    fn episode() -> LossEpisode {
        LossEpisode {
            from_ns: 1_150,
            to_ns: 1_160,
            frames: 8,
        }
    }

    fn lateness() -> Lateness {
        Lateness {
            p50: 1.0,
            p99: 2.0,
            p999: 3.0,
            max: 4.0,
        }
    }

    fn speed() -> CpuSpeed {
        CpuSpeed {
            mean_per_ms: 75.0,
            fastest_per_ms: 100.0,
            slow_times: vec![SlowTime {
                from_ns: 1_100,
                to_ns: 1_200,
            }],
        }
    }

    fn stall() -> TxStall {
        TxStall {
            at_ns: 1_170,
            ms: 1.5,
            until_ns: 1_180,
        }
    }

    fn whole_stream() -> StreamResult {
        let gap = Gap {
            from_ns: 1_200,
            to_ns: 1_300,
        };
        StreamResult {
            id: 0,
            from: "west".into(),
            to: "east".into(),
            intended_frames: Some(100),
            tx_frames: 99,
            tx_refused: 1,
            unsent: 1,
            tx_retries: 2,
            duration_s: 1.25,
            departure_fps: Some(80.5),
            rx_frames: 90,
            lost: 8,
            duplicated: 1,
            reordered: Some(2),
            corrupted: 1,
            rx_after_stop: 3,
            drain_s: 0.5,
            latency_us: Some(latency()),
            tagged: Some(Tagged {
                at_ns: 1_100,
                latency_us: Some(2.5),
            }),
            slices: vec![slice()],
            steps: vec![step()],
            first_lost_ns: Some(1_150),
            last_lost_ns: Some(1_160),
            loss_episodes: vec![episode()],
            loss_episodes_more: 1,
            first_rx_ns: Some(1_010),
            last_rx_ns: Some(1_900),
            longest_gap: Some(gap),
            gaps: vec![gap],
            gaps_more: 1,
            late_frames: 5,
            lateness_us: Some(lateness()),
            tx_stalls: vec![stall()],
            tx_stalls_more: 1,
            tx_stalls_more_ms: 2.5,
            sealed_before: Some(true),
        }
    }

    /// Makes a result with everything in it. Whoever adds a field here must tell the controller, too: the file is
    /// also read by tests/unit/generators/test_generator_fields.py.
    fn whole() -> TrialResult {
        TrialResult {
            id: "0".into(),
            start_ns: 1_000,
            last_tx_ns: 2_000,
            duration_s: 1.25,
            intended_duration_s: 1.0,
            streams: vec![whole_stream()],
            noise: vec![NoiseResult {
                id: 1,
                from: "west".into(),
                intended_frames: Some(10),
                tx_frames: 9,
                tx_refused: 1,
                unsent: 1,
                duration_s: 1.0,
                departure_fps: Some(10.0),
            }],
            ports: vec![PortResult {
                name: "west".into(),
                rx_overrun: 1,
                foreign: 2,
                rx_total: 100,
                merged: 1,
                esp: Some(EspCounts::default()),
                link: Some(LinkCounts::default()),
            }],
            between: vec![LinkErrors {
                lost: 1,
                damaged: 2,
                late: 3,
            }],
            host_stalls: vec![HostStall {
                cpu: 0,
                at_ns: 1_170,
                ms: 1.5,
            }],
            host_stall_ms_total: BTreeMap::from([("0".into(), 1.5)]),
            host_stalls_more: 1,
            host_stalls_more_ms: 3.5,
            stalls_watched: false,
            cpu_speed: BTreeMap::from([("0".into(), speed())]),
            senders_run_ms: 1.0,
            senders_wait_ms: 2.0,
            receivers_run_ms: 3.0,
            receivers_wait_ms: 4.0,
            clock_step_ns: 5,
            stopped_early: true,
            shortfall: "why frames are unsent".into(),
            faults: vec!["why nothing can be believed".into()],
            warnings: vec!["what holds for each figure".into()],
            notes: vec!["what else was noticed".into()],
            not_measured: vec!["what is not known".into()],
        }
    }

    #[test]
    fn the_controller_knows_every_field() {
        let told = serde_json::to_value(Event::Trial(Box::new(whole()))).unwrap();
        let known: serde_json::Value = serde_json::from_str(include_str!("trial_result.json")).unwrap();
        assert_eq!(
            told, known,
            "write this into protocol/trial_result.json:\n{told:#}"
        );
    }
}
