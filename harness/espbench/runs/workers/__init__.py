# SPDX-License-Identifier: Apache-2.0
"""Measures on several processes or machines: tasks of workers, and one driver that alone writes the run directory.

In virtual time a case is a task. `session` is the driver: it gives cases out as those they begin with are finished, and
keeps what comes. `local` has the worker processes of this machine behind an executor, `cluster` those of other
machines, by Dask, `lent` those of a Python program's executor; `equal` demands of a cluster's what the driver has,
`versions` says which espbench it is. `process` is one as who started it sees it, `worker` what runs in it, which sees
the driver as `driver` shows it; `messages` is all that goes between them.
In real time a share of the plan is a task: `shares` splits it, `bench_session` is the driver, `benches` has the
machines, `machines` what the manifest has of each, `share` measures one.
May import `this_machine`, `results`, `plan`, `plan.keys`, `plan.resolved`, `platforms`, `platforms.virtual.parts`,
`generators`, `measure`, `measure.inputs`, `procedures`, `procedures.boards` and `runs`.
"""
