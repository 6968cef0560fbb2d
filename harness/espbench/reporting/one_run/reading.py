# SPDX-License-Identifier: Apache-2.0
"""How to read a report: its terms and their sources, what the figures mean and what they do not."""

from __future__ import annotations

READING: tuple[tuple[str, str], ...] = (
    (
        "Throughput",
        "The highest offered load, in frames/s, at which the frame loss ratio stayed within the loss goal "
        "in the final trial (RFC 1242 3.17, RFC 2544 26.1). It is a rate shown to pass: the true limit "
        "lies between it and the lowest rate shown to fail, closer together than the plan's resolution.",
    ),
    (
        "Throughput that forgives",
        "Where 26.1 is among the deviations listed with a figure, its search forgave trials that lost: a preset of "
        "MLRsearch lets up to its share of the trials' time miss the goal (conditional throughput), loss verification "
        "tries a load that lost little again. Such a figure says what the DUT carries most of the time.",
    ),
    (
        "Loss goal",
        "0 % is RFC 2544's. 0.001 % allows one frame in 100,000: it needs at least that many frames a "
        "trial and direction, otherwise the answer is UNRESOLVABLE rather than met.",
    ),
    (
        "Status",
        "OK: there is a figure. LOWER_BOUND (≥, an arrow up): at least this load passed its final trials; those above "
        "could not be judged, for the reason given. BELOW_MINIMUM: the goal was missed even at the lowest rate of the "
        "plan. INVALID: no trial could be trusted, or what the test builds upon has no figure. VIOLATED: frames "
        "crossed without encryption; that is for ever, and there is no figure. "
        "UNRESOLVABLE: the trials were too short to tell the goal from zero, or to see the end of what they measure.",
    ),
    (
        "Loss at most, void",
        "Under a loss goal stands the loss ratio that the valid final trials at the figure's load exclude with 95 % "
        "confidence (exact Poisson bound, the worse direction). Void: final trials at that load that say nothing, "
        "since the host or the tester disturbed them; the rule is the same for trials that passed and that missed.",
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
        "Yes only if every clause was kept: 60 s final trials (24), the waits around a trial (23), the "
        "frame sizes (9.1). Short: final trials under 60 s; such figures are good for comparing on one "
        "machine in one hour, and are not RFC 2544 results.",
    ),
    (
        "Encryption",
        "Proven: in every trial that counts, the packet counters of both gateways' Security Associations "
        "moved by the frames that crossed, and cleartext was shown to be blocked. Baseline: forwarded in "
        "clear on purpose. Encryption not proven: espbench could not read the boxes' counters; what was "
        "counted may have crossed in clear.",
    ),
    (
        "CPU",
        "Time of that gateway alone (its kernel thread, process tree or guest) over exactly the trial: as "
        "a share of one core, and in µs per frame. If gateways share a core, a warning says so and the "
        "throughput is that of both on one core.",
    ),
    (
        "Latency",
        "Beside a throughput: of the frames of its final trial, a side result and not RFC 2544 26.2, which asks for "
        "120 s and 20 repeats. A latency test has a section of its own.",
    ),
    (
        "Tests beside throughput",
        "Each has a section in the form its standard prescribes. Mean, least, greatest and standard deviation (of "
        "the sample) are over the n measurements beside them. What a test builds upon, such as the throughput it is "
        "made at, was measured in the same run at the same point.",
    ),
    (
        "Beside plain forwarding",
        "Throughput below 1 × and CPU per frame above 1 × are the cost of IPsec. CPU per frame depends on "
        "the load as well, since a busy gateway handles frames in batches: the two sides of a ratio were "
        "measured at different loads.",
    ),
    (
        "Where a frame was lost",
        "From the counters along the path, first to last. Lost is what was sent and not received intact: a frame that "
        "came damaged is lost (RFC 2544 10), booked as damaged on the way. Frames the generator did not send and "
        "frames its receiver dropped are the tester's fault and make a trial INVALID; loss that coincides with a "
        "stall of the host does so too.",
    ),
    (
        "Queues",
        "A deep queue swallows a short overload without loss. A rate that was only stored, not forwarded "
        "(frames kept arriving after sending stopped, latency grew), does not count as sustained.",
    ),
    (
        "What the figures do not mean",
        "They are of this DUT, on this host, in this configuration. A software gateway on a shared or "
        "virtual machine says little about other machines; the ratios between stacks and suites in one "
        "run say more. A difference smaller than that between repeats is not a difference.",
    ),
)
