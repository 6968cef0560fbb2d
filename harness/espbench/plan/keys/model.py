# SPDX-License-Identifier: Apache-2.0
"""The plan that a user writes: its keys, their values and their meaning.

The docstring under each key is also its description in the JSON Schema that editors use.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue, PlainValidator, WithJsonSchema, model_validator

from espbench.catalogue.board_crypto import DEFAULT, Behaviour
from espbench.catalogue.stack_names import BASELINES
from espbench.plan.keys.board_tests import AcceleratorVariant, Bus, PublicKeyUnit
from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.plan.keys.generator_choice import GeneratorChoice, Native
from espbench.plan.keys.ipsec_tests import (
    Attack,
    Capacity,
    Failover,
    FirstPacket,
    PublicKey,
    RekeyLoss,
    RekeyRate,
    Reset,
    SetUpRate,
)
from espbench.plan.keys.kernel_test import CipherKernels
from espbench.plan.keys.links import Links
from espbench.plan.keys.ports import Ports
from espbench.plan.keys.rfc2544_tests import (
    AroundTrials,
    BackToBack,
    Flood,
    FrameLoss,
    Latency,
    SystemRecovery,
)
from espbench.plan.keys.search_choice import PresetName, Search, with_preset
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.keys.values import (
    FrameSize,
    LineRate,
    LossGoal,
    Name,
    PlanRate,
    Resolution,
    TrialDuration,
)
from espbench.plan.reading.reader import Strict, shown
from espbench.plan.reading.units import Expected
from espbench.plan.traffic.traffic_profiles import RFC2544, rfc2544_frame
from espbench.terms import OPERATIONS, Direction

Topology = Literal["gateway-to-gateway", "single-gateway", "external", "no-network"]
SINGLE = "single-gateway"
NO_NETWORK = "no-network"
COMPARED_REPEATS = 5
"""The default of `repeat` for a plan that compares."""
FIRST_SEED = 1
"""The default of `seed`."""


def _list_of(*default: JsonValue, shown: list[JsonValue] | None = None) -> Any:
    """Return the field of a list key with this default; an empty list is a mistake, unless the default is empty."""
    return Field(
        default_factory=lambda: [*default],
        min_length=1 if default else 0,
        json_schema_extra={"default": shown or [*default]},
    )


class Throughput(AroundTrials):
    """Throughput (RFC 2544 26.1): the highest load at which the loss stays within each goal."""

    keys_are: ClassVar[str] = "a key of a throughput test"

    loss_goals: list[LossGoal] = _list_of(0.0, 1e-5, shown=["0", "0.001%"])
    """Allowed frame loss ratios. One search finds a throughput for each."""
    trial: TrialDuration = 2.0
    """Length of a search trial."""
    final_trial: TrialDuration = 60.0
    """Length of the trial that a figure is taken from; RFC 2544 24 asks for 60 s."""
    resolution: Resolution = 0.01
    """The search ends when a load that passed and one that missed are this close, relative to the upper one."""
    minimum: PlanRate | None = None
    """Lowest load, per direction. If it misses the goal, the case is BELOW_MINIMUM. Default: 1 % of maximum."""
    maximum: PlanRate | None = None
    """Highest load, per direction. Default: the line rate if the tester reaches it, else 90 % of the ceiling."""
    search: Search = "bisection"
    """bisection: all goals at once. mlr: the MLRsearch library (draft-ietf-bmwg-mlrsearch), with a preset."""
    preset: PresetName | None = None
    """A preset of mlr. rfc2544 (default): 60 s without loss. tst009: 1 of 2 may lose. csit: 10 of 21 of 1 s may
    lose.
    """
    loss_verification: Annotated[int, Field(ge=0, le=10)] = 0
    """Times that a load that lost little is tried again before it counts as missed (ETSI GS NFV-TST 009)."""
    warm_start: bool = True
    """Begin each frame size at the load that earlier sizes suggest. Does not change the result."""

    @model_validator(mode="before")
    @classmethod
    def _lengths_of_the_preset(cls, value: Any) -> Any:
        return with_preset(value)

    @property
    def longest_s(self) -> float:
        """The duration of a search trial and the final trial after it, s."""
        return self.trial + self.final_trial


class Accelerator(Strict):
    """Driver-level test of the crypto engine: one operation at a time (n+1 after n), against all at once.

    Emulated boards have it; UML has it in software.
    """

    keys_are: ClassVar[str] = "a key of an accelerator test"

    operations: Annotated[int, Field(ge=1000, le=1_000_000)] = 50_000
    """Number of operations in each of the two tests; each has its own block; all have one key."""
    sizes: list[Annotated[int, Field(ge=16, le=4096, multiple_of=16)]] = _list_of(
        64, 128, 256, 512, 1024, 1456
    )
    """Block sizes, bytes; multiples of 16."""
    suites: list[Literal["3des-sha1", "3des-md5", "aes128-sha1", "aes256-sha1", "aes256-sha256"]] = _list_of(
        "3des-sha1", "aes128-sha1"
    )
    """Cipher and hash, computed by one request to the driver."""
    crypto: list[Behaviour] = _list_of(DEFAULT)
    """Uses of the engine by the driver (docs/powerquicc.md): async, polling, dual-pass, software (UML: only this)."""
    variants: list[AcceleratorVariant] = Field(
        default_factory=lambda: [AcceleratorVariant()], min_length=1, json_schema_extra={"default": [{}]}
    )
    """Ways to make the test, such as [{}, {keys: 16}]. Each is made with every suite, size and use."""


class Test(Strict):
    """One test: its name and, under it, its settings. Settings left out have defaults."""

    __test__: ClassVar[bool] = False  # pytest must not collect it
    keys_are: ClassVar[str] = "a test espbench has"

    throughput: Throughput | None = None
    """Throughput (RFC 2544 26.1): the highest load at which the loss stays within each goal."""
    latency: Latency | None = None
    """Latency (RFC 2544 26.2): of a tagged frame in a stream at the throughput, repeated; and of all frames."""
    frame_loss: FrameLoss | None = None
    """Frame loss rate (RFC 2544 26.3): from the maximum rate down, until two rates in a row lose nothing."""
    flood: Flood | None = None
    """Forwarding rate at the highest load of the line or the tester, compared with the throughput."""
    bus: Bus | None = None
    """Bytes that an emulated board moves over its memory bus per frame."""
    back_to_back: BackToBack | None = None
    """Back-to-back frames (RFC 2544 26.4, RFC 9004): the longest burst at line rate without loss."""
    system_recovery: SystemRecovery | None = None
    """System recovery (RFC 2544 26.5): after an overload drops to half, the time until the last lost frame."""
    time_to_first_packet: FirstPacket | None = None
    """Time to first packet (ipsec-meth 10.5): traffic that finds no SA triggers the tunnel."""
    rekey_loss: RekeyLoss | None = None
    """Frame loss while phase 2 is rekeyed (ipsec-meth 11.5)."""
    set_up_rate: SetUpRate | None = None
    """Set-up rates of tunnels, phase 1 and phase 2 (ipsec-meth 12.1 to 12.3), and their upper bound."""
    rekey_rate: RekeyRate | None = None
    """Rekey rates of phase 1 and phase 2 (ipsec-meth 13.1, 13.2): many SAs expire together, repeatedly."""
    capacity: Capacity | None = None
    """Tunnel or SA capacity (ipsec-meth 8.1, 8.2): tunnels are added until one more is refused."""
    failover: Failover | None = None
    """Tunnel failover time (ipsec-meth 14): Office's IPsec is killed, and a standby replaces it."""
    reset: Reset | None = None
    """Reset (RFC 2544 26.6, RFC 6201) of the daemon, the SAs, or the gateway."""
    attack: Attack | None = None
    """Under attack (ipsec-meth 15.1 to 15.3): how much legitimate traffic is still forwarded, and the CPU cost."""
    public_key: PublicKey | None = None
    """Speed of public-key operations on both gateways, the upper bound of every set-up rate."""
    accelerator: Accelerator | None = None
    """Driver-level test of the crypto engine, once for each DUT (platforms: qemu_e500, uml)."""
    public_key_unit: PublicKeyUnit | None = None
    """Public-key operations by the crypto engine and in software, once for each DUT (platform: qemu_e500)."""
    cipher_kernels: CipherKernels | None = None
    """NPCryptBench: cipher and hash kernels on a network processor (platform: ixp)."""

    @model_validator(mode="before")
    @classmethod
    def _one_test(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not value:
            raise Expected("a test and its settings", "write - throughput: {}")
        if len(value) > 1:
            raise Expected("one test in an entry", "begin each with a dash of its own")
        return {key: {} if settings is None else settings for key, settings in value.items()}

    @property
    def name(self) -> str:
        """The test's key, as in results.csv."""
        return next(key for key, settings in self if settings is not None)

    @property
    def settings(self) -> AroundTrials | Accelerator | PublicKeyUnit | CipherKernels:
        """The settings under the test's key."""
        settings = getattr(self, self.name)
        assert isinstance(settings, AroundTrials | Accelerator | PublicKeyUnit | CipherKernels)
        return settings


class Flows(Strict):
    """Says how many flows the offered frames spread over (RFC 2544 12)."""

    keys_are: ClassVar[str] = "a key of flows"

    networks: Annotated[int, Field(ge=1, le=256)] = 1
    """Destination networks; RFC 2544 12 asks for one, then 256."""
    ports: Annotated[int, Field(ge=1, le=64512)] = 1
    """UDP source ports in each network."""


_LARGEST_REFERENCE = 1_000_000_000


def _reference(value: object) -> str:
    is_text = isinstance(value, str) and value
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_REFERENCE
    if not is_text and not is_number:
        raise Expected("the name of what is compared, as reports show it", "leave it out for the first")
    return str(value)


_REFERENCE_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "integer", "minimum": -_LARGEST_REFERENCE, "maximum": _LARGEST_REFERENCE},
            {"type": "null"},
        ]
    }
)
_ONE_DUT = {"type": "string", "minLength": 1, "examples": ["auto", "netns", "uml", "./my-profile.yaml"]}
_DUT_SCHEMA = WithJsonSchema({"anyOf": [_ONE_DUT, {"type": "array", "items": _ONE_DUT, "minItems": 1}]})


class Compare(Strict):
    """Says what the plan compares; the axis alone means the defaults."""

    keys_are: ClassVar[str] = "a key of compare"

    by: Literal["stack", "suite", "dut", "kernel", "version", "frame_size"]
    """The axis. version: entries of one stack that differ in version or prefix. kernel: profiles of dut."""
    reference: Annotated[str | None, PlainValidator(_reference), _REFERENCE_SCHEMA] = None
    """The arm that the others are compared with, by its name in reports. Default: the first."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 2544
    """Seed of the order in which cases are measured; the run directory records it."""
    at: FixedLoads | None = Field(default_factory=FixedLoads, json_schema_extra={"default": {}})
    """Also compare with alternating trials at fixed loads (docs/comparison.md). false: only by searches."""

    @model_validator(mode="before")
    @classmethod
    def _axis_alone(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return {"by": value} if isinstance(value, str) else value
        if "reference" in value and value["reference"] is None:
            value = value | {"reference": "null"}  # YAML reads the stack's bare name `null` as no value
        if isinstance(at := value.get("at", {}), bool) or at is None:
            value = value | {"at": None if at is False else {}}
        return value


def _dut(value: object) -> str | list[str]:
    if isinstance(value, list):
        wrong = [entry for entry in value if not isinstance(entry, str) or not entry]
        if wrong:
            raise Expected(
                "profiles in the list",
                f"{shown(wrong[0])} is not a profile: espbench list duts shows the profiles",
            )
        if not value:
            raise Expected("at least one profile", "espbench list duts shows them")
        return value
    if not isinstance(value, str) or not value:
        raise Expected("auto, a profile or a label", "espbench list duts shows the profiles")
    return value


class Plan(Strict):
    """An espbench plan: what to measure on which device, with which traffic."""

    keys_are: ClassVar[str] = "a key of the plan"

    name: Name
    """Name of the plan; run directories are called <time>-<name>."""
    topology: Topology
    """gateway-to-gateway: two gateways that espbench builds. external: boxes that it did not build.

    single-gateway: one gateway that espbench builds, with the tester as its ESP peer (RFC 2544 figure 2). no-network:
    processors that run cipher kernels."""
    dut: Annotated[str | list[str], PlainValidator(_dut), _DUT_SCHEMA] = "auto"
    """Device under test: auto, a profile of dut-profiles/ or the path of one; a label if external.

    A list of profiles measures each; they must have one platform, line_rate and mtu."""
    stacks: list[StackChoice] = _list_of()
    """The IPsec implementations to measure. plain, the baseline without IPsec, is always measured first."""
    suites: list[str] = _list_of()
    """ESP suites; each is measured with each stack except plain and null."""
    traffic: str = RFC2544
    """Traffic profile: a name of `espbench list traffic`, or the path of one, such as ./mine.yaml."""
    frame_sizes: list[FrameSize] = _list_of(*rfc2544_frame().sizes)
    """Bytes with FCS, or names of mixes. Default: the traffic profile's; those of RFC 2544 9.1."""
    directions: list[Direction] = _list_of("one-way")
    """one-way: west to east. both-ways: both at once (RFC 2544 14).

    With topology single-gateway: encryption (west to east), decryption (east to west), both-ways; by default the
    first two, each separately (ipsec-meth 9.3, 9.4)."""
    ip_versions: list[Literal[4, 6]] = _list_of(4)
    """IP versions, inside and outside the tunnel."""
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    """Times that each case is measured. Default: 1; 5 with compare. A comparison by searches alone needs 3."""
    compare: Compare | None = None
    """Compare the entries of one axis: measure them in shuffled order, and report which is faster."""
    flows: Flows = Flows()
    """The flows over which the frames are spread."""
    dont_fragment: bool = False
    """Set DF in the offered IPv4 frames; all frames must then fit the MTU after ESP."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = FIRST_SEED
    """Seed of all random numbers in virtual time (keys, hash seeds, addresses); each repeat has its own numbers."""
    links: Links | None = None
    """Random but repeatable faults of the links; for `dut: uml` and gateways in virtual time."""
    capture: bool = False
    """Capture a sample of the middle link and decrypt it with the known keys."""
    ports: Ports | None = None
    """The tester's ports; only with topology external."""
    i_own_this_network: bool = False
    """You may load this network (RFC 6815): allows interfaces of the initial namespace."""
    line_rate: LineRate | None = None
    """Nominal rate of the ports. Default: from the profile, or what the interface reports, if it does."""
    generator: GeneratorChoice = Field(
        default=GeneratorChoice(native=Native()), json_schema_extra={"default": "native"}
    )
    """The program that sends the traffic: native, trex or scapy, or one of them with its settings."""
    tests: Annotated[list[Test], Field(min_length=1)]
    """The tests, in the order in which they run."""

    @model_validator(mode="before")
    @classmethod
    def _a_comparison_repeats(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("compare") is not None and "repeat" not in value:
            return value | {"repeat": COMPARED_REPEATS}
        return value

    @model_validator(mode="before")
    @classmethod
    def _a_single_gateway_does_both(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("topology") == SINGLE and "directions" not in value:
            return value | {"directions": [*OPERATIONS]}
        return value

    @property
    def is_external(self) -> bool:
        """True if espbench does not build the gateways: they are boxes between the tester's ports."""
        return self.topology == "external"

    @property
    def duts(self) -> list[str]:
        """Every DUT that the plan names."""
        return self.dut if isinstance(self.dut, list) else [self.dut]

    @property
    def traffic_tests(self) -> list[tuple[str, AroundTrials]]:
        """The names and settings of the tests that offer traffic. Each has one case for every combination of the
        plan's lists.
        """
        tests = [(test.name, test.settings) for test in self.tests]
        return [(name, settings) for name, settings in tests if isinstance(settings, AroundTrials)]

    @property
    def has_rivals(self) -> bool:
        """True if two arms can be compared at the same load, frame size and suite.

        Frame sizes cannot: the same rate in frames/s is a different load for the line and the gateways. Nor can a
        stack and a baseline, which has no suite of the plan.
        """
        by = self.compare.by if self.compare else None
        return by not in (None, "frame_size") and (by != "stack" or len(self.taking_suites) > 1)

    @property
    def fixed_loads(self) -> FixedLoads | None:
        """The settings of the comparison at fixed loads; None if the plan has no such comparison."""
        if self.compare is None or not self.has_rivals:
            return None
        searched = any(isinstance(settings, Throughput) for _, settings in self.traffic_tests)
        return self.compare.at if searched else None

    @property
    def accelerator(self) -> Accelerator | None:
        """The driver-level test of the crypto engine, if the plan has it."""
        return next((test.accelerator for test in self.tests if test.accelerator is not None), None)

    @property
    def public_key_unit(self) -> PublicKeyUnit | None:
        """The test of the engine's public-key unit, if the plan has it."""
        return next((test.public_key_unit for test in self.tests if test.public_key_unit is not None), None)

    @property
    def cipher_kernels(self) -> list[CipherKernels]:
        """The tests of cipher kernels on network processors."""
        return [test.cipher_kernels for test in self.tests if test.cipher_kernels is not None]

    @property
    def encrypting(self) -> list[StackChoice]:
        """The stacks that run ESP."""
        return [choice for choice in self.stacks if choice.kind != "plain"]

    @property
    def taking_suites(self) -> list[StackChoice]:
        """The stacks that are measured with each of the plan's suites: all but plain and null."""
        return [choice for choice in self.stacks if choice.kind not in BASELINES]
