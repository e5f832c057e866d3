"""What runs around the project rather than in it: tidiness, gates and workflow templates."""
