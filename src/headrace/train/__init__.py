# SPDX-License-Identifier: Apache-2.0
"""Runs: an algorithm fed by a collector, its folder, checkpoints, figures and evaluation."""
