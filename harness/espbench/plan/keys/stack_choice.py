# SPDX-License-Identifier: Apache-2.0
"""One entry of a plan's `stacks:`: the stack, and the options for its gateways."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from espbench.catalogue.board_crypto import Behaviour
from espbench.catalogue.certificate_keys import DEFAULT_KEY, CertificateKey
from espbench.catalogue.stack_names import NULL_SUITE, STACKS, StackFacts
from espbench.catalogue.suites import Mode
from espbench.plan.keys.values import Name, Octets, text
from espbench.plan.reading import units
from espbench.plan.reading.reader import Strict, did_you_mean
from espbench.plan.reading.units import Expected

# These are IKE proposals in strongSwan's vocabulary. With a GCM cipher, the second word only names the PRF.
IKE_WORDS = (
    ("encryption", ("3des", "aes128", "aes256", "aes128gcm16", "aes256gcm16")),
    ("integrity", ("sha1", "sha256", "sha384", "sha512")),
    ("group", ("modp2048", "modp3072", "ecp256", "ecp384", "x25519")),
)
_IKE_PATTERN = "^" + "-".join(f"({'|'.join(words)})" for _, words in IKE_WORDS) + "$"
_LIFETIME_PATTERN = r"^\d+(s|m)$"
_VERSION_PATTERN = r"^[0-9][A-Za-z0-9.+~:-]*$"


def _ike(value: object) -> str:
    parts = value.split("-") if isinstance(value, str) else []
    if len(parts) != len(IKE_WORDS):
        raise Expected(
            "an IKE proposal written encryption-integrity-group, such as aes128-sha256-ecp256",
            "; ".join(f"{what}: {', '.join(words)}" for what, words in IKE_WORDS),
        )
    for part, (what, words) in zip(parts, IKE_WORDS, strict=True):
        if part not in words:
            expected = f"an IKE proposal whose {what} is one of {', '.join(words)}"
            raise Expected(expected, did_you_mean(part, words, "such as aes128-sha256-ecp256"))
    return "-".join(parts)


def _lifetime(value: object) -> float:
    seconds = units.parse_duration(value)
    if seconds and not (isinstance(value, str) and re.fullmatch(_LIFETIME_PATTERN, value)):
        raise Expected("whole seconds or minutes, such as 3600s or 60m", "IKE daemons count in seconds")
    return seconds


def _version(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_VERSION_PATTERN, value):
        raise Expected(
            "a package version such as 5.9.8-5+deb12u1", "quote it; `apt list -a` shows those there are"
        )
    return value


Lifetime = Annotated[
    float,
    PlainValidator(_lifetime),
    PlainSerializer(units.format_duration, return_type=str),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": _LIFETIME_PATTERN}, {"const": 0}], "examples": ["60m", 0]}
    ),
]


class StackChoice(Strict):
    """A stack and its options; the name alone means the defaults."""

    keys_are: ClassVar[str] = "a key of a stack"

    stack: str | None = None
    """The stack's name: `espbench list stacks`."""
    home: str | None = None
    """The IKE daemon of gateway Home where Office runs another; with `office`, instead of `stack`."""
    office: str | None = None
    """The IKE daemon of gateway Office; with `home`, instead of `stack`."""
    label: Name | None = None
    """The name in reports; needed if one stack is listed twice. Default: the stack's name."""
    version: Annotated[str, PlainValidator(_version), text(_VERSION_PATTERN, "5.9.8-5+deb12u1")] | None = None
    """Version of the daemon's package (IKE stacks). Default: the newest in the package sources."""
    prefix: Annotated[str, Field(min_length=1)] | None = None
    """Folder with your own build of the daemon (IKE stacks), instead of `version`; relative to the plan."""
    tunnels: Annotated[int, Field(ge=1, le=1000)] = 1
    """Number of tunnels over which the traffic is spread (strongswan-libipsec: 1). plain: number of policies."""
    policies: Literal["same", "none"] = "same"
    """plain: the policies of a stack with ESP, but all let traffic pass (same); or no policies (none).

    The first shows what ESP itself costs, the second what a router without IPsec would do.
    """
    mode: Mode = "tunnel"
    """ESP mode (RFC 4303 3.1). Transport mode (xfrm, null) protects IP in IP between the gateways."""
    replay_window: Annotated[int, Field(ge=0, le=4096)] = 32
    """Anti-replay window, packets; 0 switches the check off."""
    esn: bool = False
    """64-bit extended sequence numbers (RFC 4304)."""
    udp_encapsulation: bool = False
    """Carry ESP inside UDP (RFC 3948), as behind a NAT; strongswan-libipsec always does."""
    df: Literal["copy", "clear", "set"] = "copy"
    """The outer IPv4 header's don't-fragment bit (RFC 4301 8.1): that of the inner header, never, always.

    Linux has no `set` in tunnel mode and no `clear` in transport mode.
    """
    interface: bool = False
    """Route through an XFRM interface instead of by policy; the kernel needs CONFIG_XFRM_INTERFACE."""
    crypto: Behaviour | None = None
    """The way ESP drives the crypto engine (xfrm and lean-esp with platform: qemu_e500).

    async: one descriptor for cipher and hash, an interrupt when it is done. polling: the same, and the CPU
    waits for it. dual-pass: cipher, then hash, each waited for. software: the engine is not used. Default: async.
    """
    ike: Annotated[str, PlainValidator(_ike), text(_IKE_PATTERN, "aes128-sha256-ecp256")] = (
        "aes128-sha256-ecp256"
    )
    """IKE proposal: encryption-integrity-group (IKE stacks)."""
    auth: Literal["psk", "certificates"] = "psk"
    """The way the gateways authenticate (IKE stacks); PSKs and certificates are new for each pair of gateways."""
    certificate: CertificateKey = DEFAULT_KEY
    """The kind of key in the certificates (auth: certificates); the CA has a key of the same kind."""
    lifetime: Lifetime = 0.0
    """Lifetime of an ESP SA (IKE stacks); 0: it is never replaced."""
    lifetime_bytes: Octets = 0
    """Bytes of IP packets after which an ESP SA is replaced (strongswan, libreswan); 0: any number."""
    idle_timeout: Lifetime = 0.0
    """Time without traffic after which ESP SAs are deleted, until traffic asks for new ones (strongswan); 0: never."""
    ike_lifetime: Lifetime = 0.0
    """Lifetime of the IKE SA (IKE stacks); 0: it is never replaced."""

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        if value is None:  # YAML reads the stack's bare name `null` as no value
            return {"stack": "null"}
        if isinstance(value, dict) and "stack" in value and value["stack"] is None:
            return value | {"stack": "null"}
        return {"stack": value} if isinstance(value, str) else value

    @property
    def kind(self) -> str:
        """The stack's own name, whatever its label is; if Home's and Office's daemons differ, the names of both."""
        return self.stack or f"{self.home}+{self.office}"

    @property
    def facts(self) -> list[StackFacts]:
        """The catalogue's facts about the stack; if Home's and Office's daemons differ, about both."""
        return [STACKS[name] for name in (self.stack, self.home, self.office) if name in STACKS]

    @property
    def daemons(self) -> list[str]:
        """The IKE daemons that negotiate for the stack, each once; none for a stack without IKE."""
        return list(dict.fromkeys(facts.daemon for facts in self.facts if facts.daemon))

    @property
    def kernel_esp(self) -> bool:
        """True if the kernel's ESP carries the stack's traffic on at least one gateway."""
        return any(facts.kernel_esp for facts in self.facts)

    @property
    def shown(self) -> str:
        """The stack's name in results and reports."""
        return self.label or self.stack or f"{self.home}-to-{self.office}"

    @property
    def in_udp(self) -> bool:
        """True if ESP travels inside UDP."""
        return self.udp_encapsulation or self.kind == "strongswan-libipsec"

    @property
    def options(self) -> dict[str, Any]:
        """The keys that are not defaults, as a plan writes them, without the stack's name and the label."""
        return self.model_dump(
            mode="json", exclude_defaults=True, exclude={"stack", "home", "office", "label"}
        )

    def suites(self, of_the_plan: list[str]) -> list[str]:
        """Return the suites with which the stack is measured: the plan's, one of its own (null), or none (plain)."""
        return {"plain": [], "null": [NULL_SUITE]}.get(self.kind, of_the_plan)

    def prefix_beside(self, plan_path: Path | None) -> Path | None:
        """Return the folder that `prefix` names; a relative path starts beside the plan file. None without `prefix`."""
        if self.prefix is None:
            return None
        return ((plan_path.parent if plan_path else Path()) / self.prefix).absolute()
