# SPDX-License-Identifier: Apache-2.0
"""Changes, watches and locks the machine that runs espbench, and undoes all changes.

`registry` records and undoes every change, `launcher` starts programs that die with their controller, `network` makes
namespaces and links, and `monitor` receives the kernel's messages about links and SAs. `cpu_clock` says whether a clock
follows the load, `kept` and `private` which files can be trusted, `distribution` which Debian this is. This folder
knows no gateways and no tests. May import of espbench only its words.
"""
