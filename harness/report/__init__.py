"""What a finding says, in words."""
