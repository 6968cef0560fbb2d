# SPDX-License-Identifier: Apache-2.0
"""The ten kernels, in the order of the paper's tables: the tables, keys and known answers of each.

The code is written for reading, not for speed. The programs of harness/network_processor are compared with it. May
import nothing.
"""

from __future__ import annotations

from espbench.npcrypt.ciphers.aes import AES
from espbench.npcrypt.ciphers.blowfish import BLOWFISH
from espbench.npcrypt.ciphers.des import DES
from espbench.npcrypt.ciphers.hashes import MD5, SHA1
from espbench.npcrypt.ciphers.idea import IDEA
from espbench.npcrypt.ciphers.kernel import Kernel
from espbench.npcrypt.ciphers.rc4 import RC4
from espbench.npcrypt.ciphers.rc5 import RC5
from espbench.npcrypt.ciphers.rc6 import RC6
from espbench.npcrypt.ciphers.seal import SEAL

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel for kernel in (AES, DES, RC5, RC6, BLOWFISH, IDEA, RC4, SEAL, MD5, SHA1)
}
