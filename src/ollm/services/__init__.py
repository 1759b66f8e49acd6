"""What the runtime decides with: each file one requirement, none knows another."""
