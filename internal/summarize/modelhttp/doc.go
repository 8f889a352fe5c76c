// Package modelhttp is the common part of the summarizers that call a model over HTTP: the options of an endpoint,
// the pace, retries and limits of requests, and which parts of a failure may be shown. It knows no provider's
// messages.
package modelhttp
