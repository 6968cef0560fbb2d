# SPDX-License-Identifier: Apache-2.0
"""Builds what the emulated PowerQUICC gateways consist of, from Debian's sources: kernel, initramfs, QEMU."""
