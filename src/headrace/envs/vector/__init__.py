# SPDX-License-Identifier: Apache-2.0
"""Environments behind Gymnasium's vector interface: the native and the array definition."""
