"""On the import path of an app's test run; nothing else is in here."""
