"""What the measuring scripts under bench/ share. Standard library only."""
