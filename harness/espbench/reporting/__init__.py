# SPDX-License-Identifier: Apache-2.0
"""Results → documents: `write_report` in `report`; its templates are in reports/ at the project's root."""
