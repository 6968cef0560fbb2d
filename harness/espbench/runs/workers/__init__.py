# SPDX-License-Identifier: Apache-2.0
"""Measures on several processes or machines: workers do tasks, and only one driver writes the run directory.

In virtual time a case is a task. `session` is the driver: it gives a case out when the cases that it starts from are
finished, and keeps its records. Workers are processes of this machine (`local`), of other machines by Dask (`cluster`),
or of a Python program's executor (`lent`). `equal` gives a cluster's workers the driver's files and refuses workers
that differ; `versions` compares the versions of espbench. `process` is the starter's view of a worker process, `worker`
the program in it, and `driver` the worker's view of the driver; `messages` defines what they send to each other.
In real time a share of the plan is a task: `shares` splits the plan and measures a share, `bench_session` is the
driver, `benches` knows the machines, and `machines` merges their entries in the manifest.
Both drivers have one `loop`: it takes the messages of the workers, and begins a task again whose worker was lost.
May import `this_machine`, `results`, `plan`, `plan.keys`, `plan.resolved`, `platforms`, `platforms.virtual.own`,
`platforms.virtual.parts`, `generators`, `measure`, `measure.inputs`, `procedures`, `procedures.boards`, `runs` and
`runs.platform_kinds.shared`.
"""
