# SPDX-License-Identifier: Apache-2.0
"""The tests of draft-ietf-bmwg-ipsec-meth-05, one module each; `ipsec_common` is what they share.

May import `plan.keys`, `plan.resolved`, `platforms`, `stacks`, `stacks.daemons`, `generators`, `measure.inputs`,
`measure.proof` and `procedures`.
"""
