# SPDX-License-Identifier: Apache-2.0
"""The rules: environments by name, each in up to three definitions."""
