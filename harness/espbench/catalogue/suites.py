# SPDX-License-Identifier: Apache-2.0
"""Has the ESP suites as data: the kernel's names of their algorithms, and the sizes of their packets."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from espbench.paths import own_yaml

Mode = Literal["tunnel", "transport"]

IP_HEADER_BYTES = {4: 20, 6: 40}
_SPI_AND_SEQUENCE = 8
_UDP_ENCAPSULATION = 8  # the UDP header of RFC 3948
_TRAILER = 2  # pad length and next header
_COMMON_MODULES = ("xfrm_user", "esp4", "esp6")
_COMMON_OPTIONS = ("CONFIG_XFRM_USER", "CONFIG_INET_ESP", "CONFIG_INET6_ESP")


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Encryption(_Data):
    """A cipher, as NETLINK_XFRM needs it."""

    kernel_name: str
    key_bits: int


class Integrity(_Data):
    """An integrity algorithm, or an AEAD (key_bits then include the salt)."""

    kernel_name: str
    key_bits: int
    icv_bits: int


class Suite(_Data):
    """One ESP suite: cipher and integrity, or an AEAD that is both."""

    name: str
    description: str
    encryption: Encryption | None = None
    integrity: Integrity | None = None
    aead: Integrity | None = None
    iv_bytes: int
    block_bytes: int
    modules: list[str]
    kernel_options: list[str]

    @model_validator(mode="after")
    def _one_kind(self) -> Suite:
        separate = self.encryption is not None and self.integrity is not None
        if separate == (self.aead is not None) or (self.encryption is None) != (self.integrity is None):
            raise ValueError("a suite has encryption and integrity, or an aead")
        return self

    @property
    def icv_bytes(self) -> int:
        """Length of the integrity check value on the wire, bytes."""
        with_icv = self.aead or self.integrity
        return with_icv.icv_bits // 8 if with_icv else 0

    def esp_packet_size(
        self, inner_ip_bytes: int, mode: Mode, outer_ip_version: int, udp: bool = False
    ) -> int:
        """Return the size of the IP packet on the ciphertext side (RFC 4303 2), bytes without link framing.

        inner_ip_bytes: size of the cleartext IP packet with its header. Transport mode leaves that header outside;
        tunnel mode encrypts it and puts a new one in front. udp: ESP inside UDP (RFC 3948).
        """
        header = _outer_header(outer_ip_version, udp)
        outside = IP_HEADER_BYTES[outer_ip_version] if mode == "transport" else 0
        protected = inner_ip_bytes - outside
        align = max(4, self.block_bytes)
        ciphertext = -(-(protected + _TRAILER) // align) * align
        return header + _SPI_AND_SEQUENCE + self.iv_bytes + ciphertext + self.icv_bytes

    def largest_inner(
        self, mtu: int, mode: Mode = "tunnel", outer_ip_version: int = 4, udp: bool = False
    ) -> int:
        """Return the size of the largest cleartext IP packet that needs no fragmentation with this MTU, bytes."""
        header = _outer_header(outer_ip_version, udp)
        room = mtu - header - _SPI_AND_SEQUENCE - self.iv_bytes - self.icv_bytes
        align = max(4, self.block_bytes)
        outside = IP_HEADER_BYTES[outer_ip_version] if mode == "transport" else 0
        return room // align * align - _TRAILER + outside


def _outer_header(ip_version: int, udp: bool) -> int:
    return IP_HEADER_BYTES[ip_version] + (_UDP_ENCAPSULATION if udp else 0)


@cache
def suites() -> dict[str, Suite]:
    """Return every suite by name, in the order of suites.yaml."""
    data = own_yaml(Path(__file__).parent / "suites.yaml")
    entries = [
        Suite.model_validate(
            entry
            | {"modules": [*_COMMON_MODULES, *entry["modules"]]}
            | {"kernel_options": [*_COMMON_OPTIONS, *entry["kernel_options"]]}
        )
        for entry in data
    ]
    return {suite.name: suite for suite in entries}
