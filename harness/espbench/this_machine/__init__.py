# SPDX-License-Identifier: Apache-2.0
"""The machine that runs espbench: how it is changed and made as it was, watched and locked.

`registry` makes and undoes every change, `launcher` starts programs that die with their controller, `network`
makes namespaces and links, `monitor` hears what happens to them; `kept` and `private` say which files are
believed, `distribution` whether Debian's packages can be installed. No gateway and no test is known here. May
import nothing of espbench but its words.
"""
