# SPDX-License-Identifier: Apache-2.0
"""Explains how to read a report: its terms and their sources, what the figures mean and what they do not."""

from __future__ import annotations

READING: tuple[tuple[str, str], ...] = (
    (
        "Throughput",
        "The highest offered load, in frames/s, at which the frame loss ratio stayed within the loss goal "
        "in the final trial (RFC 1242 3.17, RFC 2544 26.1). This rate passed. The true limit lies "
        "between it and the lowest rate that failed; the two are closer than the plan's resolution.",
    ),
    (
        "Throughput in spite of missed trials",
        "If 26.1 is among the deviations of a figure, its search accepted loads at which some trials missed the goal. "
        "A preset of MLRsearch accepts this for a share of the trials' time (conditional throughput); loss "
        "verification tries a load again that lost little. Such a figure says what the DUT forwards most of the time.",
    ),
    (
        "Loss goal",
        "0 % is the goal of RFC 2544. 0.001 % allows one lost frame in 100,000. It needs at least that many frames "
        "per trial and direction; with fewer the answer is UNRESOLVABLE.",
    ),
    (
        "Status",
        "OK: there is a figure. LOWER_BOUND (≥, an arrow up): this load passed its final trials; the loads above could "
        "not be judged, for the reason given. BELOW_MINIMUM: the goal was missed even at the lowest rate of the plan. "
        "INVALID: no trial could be trusted, or a result that the test uses has no figure. VIOLATED: frames crossed "
        "without encryption. There is no figure, and no later trial changes that. UNRESOLVABLE: the trials were too "
        "short to distinguish the goal from zero, or to see the end of what they measure.",
    ),
    (
        "Loss at most, void",
        "The value under a loss goal: with 95 % confidence, the loss ratio at that load is below it (exact Poisson "
        "bound from the valid final trials, the worse direction). Void: the number of final trials at that load that "
        "say nothing, because the host or the tester disturbed them. The rule is the same for trials that passed and "
        "trials that missed.",
    ),
    (
        "Frame size and Mbps",
        "Frame sizes include the 4-byte FCS (RFC 2544 9) and are those of the cleartext side; ESP makes "
        "the frames on the middle link larger. Mbps = frames/s × frame size × 8, without preamble and "
        "gap. The line rate and the theoretical frame rate count preamble and gap (20 bytes a frame, RFC "
        "2544 20).",
    ),
    (
        "RFC 2544: yes, no, short",
        "Yes only if every clause was kept: 60 s final trials (24), the waits before and after a trial (23), the "
        "frame sizes (9.1). Short: final trials under 60 s. Such figures are good for comparisons on one "
        "machine within one hour; they are not RFC 2544 results.",
    ),
    (
        "Encryption",
        "Proven: in every trial that counts, the packet counters of both gateways' Security Associations "
        "moved by exactly the number of frames that crossed, and a test showed that cleartext was blocked. Baseline: "
        "forwarded in clear on purpose. Encryption not proven: espbench could not read the counters of the boxes, so "
        "the frames that were counted may have crossed in clear.",
    ),
    (
        "CPU",
        "Time of that gateway alone (its kernel thread, process tree or guest) over exactly the trial: as "
        "a share of one core, and in µs per frame. If gateways share a core, a warning says so, and the "
        "throughput is that of both gateways on one core.",
    ),
    (
        "Latency",
        "The latency beside a throughput is that of the frames in its final trial. It is not RFC 2544 26.2, which asks "
        "for 120 s and 20 repeats. A latency test has a section of its own.",
    ),
    (
        "Tests other than throughput",
        "Each has a section in the form that its standard prescribes. Mean, minimum, maximum and standard deviation "
        "(of the sample) are over the n measurements given beside them. If a test uses a result, such as the "
        "throughput, it is from the same run and the same point.",
    ),
    (
        "Compared with plain forwarding",
        "Throughput below 1 × and CPU per frame above 1 × are the cost of IPsec. CPU per frame also depends on "
        "the load, because a busy gateway handles frames in batches; the two sides of a ratio were "
        "measured at different loads.",
    ),
    (
        "Where a frame was lost",
        "Derived from the counters along the path, from first to last. A frame is lost if it was sent and not received "
        "intact. A frame that arrived damaged is lost (RFC 2544 10), and listed as damaged on the way. Frames that the "
        "generator did not send and frames that its receiver dropped are faults of the tester, and make a trial "
        "INVALID. So does loss that coincides with a stall of the host.",
    ),
    (
        "Queues",
        "A deep queue absorbs a short overload without loss. A rate that was only stored, not forwarded, does not "
        "count: the latency grew, and frames still arrived after sending had stopped.",
    ),
    (
        "What the figures do not mean",
        "They belong to this DUT, on this host, in this configuration. A software gateway on a shared or "
        "virtual machine says little about other machines; the ratios between stacks and suites in one "
        "run say more. A difference that is smaller than the difference between repeats means nothing.",
    ),
)
