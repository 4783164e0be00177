"""Commands about the files that pipelines read: what they hold, and which runs read them."""
