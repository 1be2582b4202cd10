# SPDX-License-Identifier: Apache-2.0
"""The asynchronous run: samplers, learner, evaluator and viewer, in processes of their own."""
