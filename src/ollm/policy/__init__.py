"""Permissions: rules, shell analysis, confirmations, workspace trust (T7, T8)."""
