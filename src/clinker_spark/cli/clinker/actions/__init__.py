"""What the commands do when their options are known. They load what they need when they are called."""
