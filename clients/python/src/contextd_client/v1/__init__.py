"""The API's messages and services, generated from proto/contextd/v1 at build time."""
