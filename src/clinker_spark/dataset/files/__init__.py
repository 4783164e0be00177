"""What lies on disk, or anywhere else: stores of bytes, the catalogue and the manifests, and chunks."""
