"""What hidden columns hold, who writes them and who reads them; a test holds this against the source."""
