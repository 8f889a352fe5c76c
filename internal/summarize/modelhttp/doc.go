// Package modelhttp is what the summarizers that call a model over HTTP share: how
// an endpoint is configured, requests are paced, retried and bounded, and what of a
// failure may be said. It knows no provider's messages.
package modelhttp
