# SPDX-License-Identifier: Apache-2.0
"""Cases of virtual time side by side: each a task of a worker process, one driver that alone writes the run directory.

`session` is the driver: it gives cases out as those they begin with are finished, and keeps what comes. `local` has
the worker processes of this machine behind an executor, `cluster` those of other machines, by Dask, `lent` those of a
Python program's executor; `equal` demands of a cluster's what the driver has, `versions` says which espbench it is.
`process` is one as who started it sees it, `worker` what runs in it; `messages` is all that goes between them.
May import `this_machine`, `results`, `plan`,
`plan.resolved`, `platforms`, `platforms.virtual.parts`, `measure.inputs`, `procedures`, `procedures.boards` and `runs`.
"""
