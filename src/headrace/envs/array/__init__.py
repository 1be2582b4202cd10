# SPDX-License-Identifier: Apache-2.0
"""Environments as pure functions, one text for NumPy, torch and JAX."""
