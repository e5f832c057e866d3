"""The modeled device: work ends only when a trace says so, and every access has a clock."""
