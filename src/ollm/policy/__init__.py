"""Who may do what: rules, shell analysis, confirmations, trust (T7, T8)."""
