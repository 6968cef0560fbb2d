# SPDX-License-Identifier: Apache-2.0
"""The tests of draft-ietf-bmwg-ipsec-meth-05, one module each; `ipsec_common` is what they share, and `watching`
judges the times that they take from the daemons' logs.

May import `plan.keys`, `plan.resolved`, `platforms`, `stacks`, `stacks.daemons`, `generators`, `measure`,
`measure.inputs`, `measure.proof`, `measure.validity` and `procedures`.
"""
